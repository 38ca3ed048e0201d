// Processes of this machine: needs nothing but the system.
#include <nni/process/impl/group.ipp>
#include <nni/process/impl/identity.ipp>
#include <nni/process/impl/launcher.ipp>
#include <nni/process/impl/reaper.ipp>
