// Training sessions, compiled once for all compositions.
#include <nni/session/detail/session_core_inl.hpp>
#include <nni/session/detail/session_jobs_inl.hpp>
