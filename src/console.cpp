// How people see experiments, compiled once. Apart from the rest, so that both compile at the same time.
#include <nni/experiment/impl/console.ipp>
#include <nni/experiment/impl/console_text.ipp>
#include <nni/experiment/impl/console_view.ipp>
#include <nni/experiment/impl/view.ipp>
