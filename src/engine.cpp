// What runs an experiment, compiled once for all compositions.
#include <nni/experiment/detail/engine_inl.hpp>
#include <nni/experiment/detail/engine_loops_inl.hpp>
#include <nni/experiment/detail/engine_orders_inl.hpp>
#include <nni/experiment/detail/engine_outage_inl.hpp>
#include <nni/experiment/detail/engine_placing_inl.hpp>
#include <nni/experiment/detail/engine_steering_inl.hpp>
#include <nni/experiment/detail/experiment_resume_inl.hpp>
#include <nni/experiment/detail/experiment_run_inl.hpp>
#include <nni/experiment/experiment_core_inl.hpp>
