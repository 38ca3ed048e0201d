// Trials as processes of this machine.
#include <nni/platforms/impl/local.ipp>
#include <nni/platforms/impl/local_connection.ipp>
#include <nni/platforms/impl/local_core.ipp>
#include <nni/platforms/impl/local_metadata.ipp>
#include <nni/platforms/impl/local_outage.ipp>
