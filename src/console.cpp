// How people see experiments, compiled once. Apart from the rest, so that both compile at the same time.
#include <nni/console/console_inl.hpp>
#include <nni/console/screen_inl.hpp>
#include <nni/console/text_inl.hpp>
#include <nni/experiment/view_inl.hpp>
