// The console, compiled once; separate from the rest, so that both compile in parallel.
#include <nni/console/console_inl.hpp>
#include <nni/console/screen_inl.hpp>
#include <nni/console/text_inl.hpp>
#include <nni/experiment/view_inl.hpp>
