// The keeper: both sides of it.
#include <nni/keeper/manager/client_inl.hpp>
#include <nni/keeper/manager/launch_inl.hpp>
#include <nni/keeper/process/connection_inl.hpp>
#include <nni/keeper/process/daemon_inl.hpp>
#include <nni/keeper/process/job_inl.hpp>
#include <nni/keeper/process/keeper_inl.hpp>
#include <nni/keeper/process/keeper_records_inl.hpp>
#include <nni/keeper/process/keeper_runs_inl.hpp>
#include <nni/keeper/process/left_over_inl.hpp>
#include <nni/keeper/process/spool_inl.hpp>
#include <nni/keeper/run_if_asked_inl.hpp>
#include <nni/keeper/wire/byte_stream_inl.hpp>
#include <nni/keeper/wire/lock_inl.hpp>
#include <nni/keeper/wire/protocol_inl.hpp>
