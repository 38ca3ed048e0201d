// Trials as processes of this machine.
#include <nni/platforms/detail/local_connection_inl.hpp>
#include <nni/platforms/detail/local_core_inl.hpp>
#include <nni/platforms/detail/local_metadata_inl.hpp>
#include <nni/platforms/detail/local_outage_inl.hpp>
#include <nni/platforms/local_inl.hpp>
