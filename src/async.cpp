// Awaitable vocabulary.
#include <nni/async/impl/cancellation.ipp>
#include <nni/async/impl/child.ipp>
#include <nni/async/impl/clock.ipp>
#include <nni/async/impl/event.ipp>
#include <nni/async/impl/mailbox.ipp>
#include <nni/async/impl/mutex.ipp>
#include <nni/async/impl/offload.ipp>
#include <nni/async/impl/periodic.ipp>
#include <nni/async/impl/race.ipp>
#include <nni/async/impl/run.ipp>
#include <nni/async/impl/runtime.ipp>
#include <nni/async/impl/task_group.ipp>
#include <nni/async/impl/timeout.ipp>
#include <nni/async/impl/waiting.ipp>
#include <nni/async/impl/yield.ipp>
