// Awaitable vocabulary.
#include <nni/async/cancellation_inl.hpp>
#include <nni/async/clock_inl.hpp>
#include <nni/async/detail/child_inl.hpp>
#include <nni/async/detail/waiting_inl.hpp>
#include <nni/async/event_inl.hpp>
#include <nni/async/mailbox_inl.hpp>
#include <nni/async/mutex_inl.hpp>
#include <nni/async/offload_inl.hpp>
#include <nni/async/periodic_inl.hpp>
#include <nni/async/race_inl.hpp>
#include <nni/async/run_inl.hpp>
#include <nni/async/runtime_inl.hpp>
#include <nni/async/task_group_inl.hpp>
#include <nni/async/timeout_inl.hpp>
#include <nni/async/yield_inl.hpp>
