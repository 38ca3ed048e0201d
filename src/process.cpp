// Processes of this machine: needs nothing but the system.
#include <nni/process/group_inl.hpp>
#include <nni/process/identity_inl.hpp>
#include <nni/process/launcher_inl.hpp>
#include <nni/process/reaper_inl.hpp>
