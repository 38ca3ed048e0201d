// The ledger and the experiment; its console and its instances have separate source files.
#include <nni/experiment/control_inl.hpp>
#include <nni/experiment/detail/board_inl.hpp>
#include <nni/experiment/detail/control_core_inl.hpp>
#include <nni/experiment/detail/settings_inl.hpp>
#include <nni/experiment/import_inl.hpp>
#include <nni/experiment/options_inl.hpp>
#include <nni/experiment/summary_inl.hpp>
#include <nni/ledger/ledger_inl.hpp>
#include <nni/ledger/ledger_outage_inl.hpp>
#include <nni/ledger/ledger_resume_inl.hpp>
#include <nni/session/training_session_options_inl.hpp>
#include <nni/session/trial_job_inl.hpp>
