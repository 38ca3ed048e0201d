// The ledger and the experiment; its console and its ready compositions have source files of their own.
#include <nni/experiment/impl/board.ipp>
#include <nni/experiment/impl/control.ipp>
#include <nni/experiment/impl/control_core.ipp>
#include <nni/experiment/impl/import.ipp>
#include <nni/experiment/impl/options.ipp>
#include <nni/experiment/impl/settings.ipp>
#include <nni/experiment/impl/summary.ipp>
#include <nni/experiment/impl/training_session_options.ipp>
#include <nni/experiment/impl/trial_job.ipp>
#include <nni/session/impl/ledger.ipp>
#include <nni/session/impl/ledger_outage.ipp>
#include <nni/session/impl/ledger_resume.ipp>
