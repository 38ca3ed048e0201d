// The keeper: both sides of it.
#include <nni/keeper/impl/client.ipp>
#include <nni/keeper/impl/daemon.ipp>
#include <nni/keeper/impl/job.ipp>
#include <nni/keeper/impl/keeper.ipp>
#include <nni/keeper/impl/keeper_core.ipp>
#include <nni/keeper/impl/keeper_records.ipp>
#include <nni/keeper/impl/launch.ipp>
#include <nni/keeper/impl/left_over.ipp>
#include <nni/keeper/impl/link.ipp>
#include <nni/keeper/impl/lock.ipp>
#include <nni/keeper/impl/protocol.ipp>
#include <nni/keeper/impl/run_if_asked.ipp>
#include <nni/keeper/impl/session.ipp>
#include <nni/keeper/impl/spool.ipp>
