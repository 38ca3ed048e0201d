// The smallest policy with each hook models its concept, one with another declaration does not. Members that only look like
// slips are accepted, and flags are read by their values.

#include <nni/assessing/median_stop.hpp>
#include <nni/assessing/none.hpp>
#include <nni/concepts/check_hooks.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/datastore/journal.hpp>
#include <nni/datastore/memory.hpp>
#include <nni/platforms/in_process.hpp>
#include <nni/scheduling/unlimited.hpp>
#include <nni/storage/local_directory.hpp>
#include <nni/transport/carried.hpp>
#include <nni/transport/file_tail.hpp>
#include <nni/tuning/as_advisor.hpp>
#include <nni/tuning/grid.hpp>
#include <nni/tuning/random.hpp>
#include <nni/tuning/tpe.hpp>

namespace {

using namespace nni;

struct None {};

// ---- one concept for each hook ------------------------------------------------------------------------------------

struct Hooks {
  void set_experiment_directory(const std::filesystem::path&, const ExperimentId&);
  void on_trouble(TroubleListener);
  void advertise(std::string);
  void set_experiment_life(const std::string&, bool);
  void recorded(RunId);
  std::string remark();
  void prepare(const TrialJobForm&);
  void resume(RunId);
  void give_up();
  const std::filesystem::path& directory() const;
  const SearchSpace& search_space() const;
  std::uint64_t seed() const;
  void reseed(std::uint64_t);
  void adopt(ParameterId, const Parameters&);
  tuning::Random& tuner();
  const tuning::Random& tuner() const;
  void update_search_space(const SearchSpace&);
  std::optional<ResourceRequest> request_of(TrialId);
  void complete(TrialId, TrialJobForm&);
  void trial_started(RunId);
  void replay(const TrialOutcome&, std::vector<double>);
  void replay_unfinished(ParameterId, const Parameters&, RunId, std::vector<double>);
  void import_result(const ResultImported&);
};
struct Files {
  awaitable<void> prepare(const TrialJobForm&);
};
static_assert(UsesExperimentDirectory<Hooks> && !UsesExperimentDirectory<None>);
static_assert(ReportsTrouble<Hooks> && !ReportsTrouble<None>);
static_assert(AdvertisesAddress<Hooks> && !AdvertisesAddress<None>);
static_assert(UsesExperimentLife<Hooks> && !UsesExperimentLife<None>);
static_assert(ReleasesRecordedRuns<Hooks> && !ReleasesRecordedRuns<None>);
static_assert(GivesStartupNotice<Hooks> && !GivesStartupNotice<None>);
static_assert(PreparesRuns<Hooks> && !PreparesRuns<None> && !PreparesRuns<Files>);
static_assert(PreparesFiles<Files> && !PreparesFiles<None> && !PreparesFiles<Hooks>);
static_assert(ResumableChannel<Hooks> && !ResumableChannel<None>);
static_assert(StopsRetrying<Hooks> && !StopsRetrying<None>);
static_assert(HasDirectory<Hooks> && !HasDirectory<None>);
static_assert(BringsSearchSpace<Hooks> && !BringsSearchSpace<None>);
static_assert(HasSeed<Hooks> && !HasSeed<None>);
static_assert(Reseedable<Hooks> && !Reseedable<None>);
static_assert(AdoptsUnfinished<Hooks> && !AdoptsUnfinished<None>);
static_assert(WrapsTuner<Hooks> && !WrapsTuner<None>);
static_assert(UpdatesSearchSpace<Hooks> && !UpdatesSearchSpace<None>);
static_assert(RequestsResources<Hooks> && !RequestsResources<None>);
static_assert(CompletesForms<Hooks> && !CompletesForms<None>);
static_assert(NotifiedOfStarts<Hooks> && !NotifiedOfStarts<None>);
static_assert(ReplaysTrials<Hooks> && !ReplaysTrials<None>);
static_assert(ReplaysUnfinished<Hooks> && !ReplaysUnfinished<None>);
static_assert(ImportsResults<Hooks> && !ImportsResults<None>);

// A result that would be dropped, a parameter that is not given, a copy that would not be changed.
struct Slips {
  bool on_trouble(TroubleListener);
  awaitable<void> recorded(RunId);
  void remark();
  int prepare(const TrialJobForm&);
  void resume(TrialId);
  awaitable<void> give_up();
  const SearchSpace& search_space();
  void reseed(std::uint64_t);
  void complete(TrialId, TrialJobForm&&);
  std::vector<double> replay(const TrialOutcome&, std::vector<double>);
  tuning::Random tuner() const;
};
static_assert(!ReportsTrouble<Slips> && !ReleasesRecordedRuns<Slips> && !GivesStartupNotice<Slips>);
static_assert(!PreparesRuns<Slips> && !PreparesFiles<Slips> && !ResumableChannel<Slips> && !StopsRetrying<Slips>);
static_assert(!BringsSearchSpace<Slips> && !Reseedable<Slips> && !WrapsTuner<Slips>);
static_assert(!CompletesForms<Slips> && !ReplaysTrials<Slips>);

// ---- the policies of the library ----------------------------------------------------------------------------------

static_assert(UsesExperimentDirectory<storage::LocalDirectory> && UsesExperimentDirectory<datastore::Journal>);
static_assert(ReportsTrouble<datastore::Journal> && StopsRetrying<datastore::Journal> &&
              HasDirectory<datastore::Journal>);
static_assert(!ReportsTrouble<datastore::Memory> && !HasDirectory<datastore::Memory>);
static_assert(PreparesFiles<transport::FileTail> && ResumableChannel<transport::FileTail>);
static_assert(Reseedable<tuning::Random> && AdoptsUnfinished<tuning::Random> && BringsSearchSpace<tuning::Random>);
static_assert(Reseedable<tuning::Tpe> && AdoptsUnfinished<tuning::Tpe>);
static_assert(!HasSeed<tuning::Grid> && AdoptsUnfinished<tuning::Grid>);
using Advisor = tuning::AsAdvisor<tuning::Random, assessing::MedianStop>;
static_assert(WrapsTuner<Advisor> && std::same_as<tuner_of<Advisor>, tuning::Random> && !BringsSearchSpace<Advisor>);
static_assert(UpdatesSearchSpace<Advisor> && ReplaysTrials<Advisor> && ReplaysUnfinished<Advisor>);
static_assert(ImportsResults<Advisor> && !CompletesForms<Advisor> && !NotifiedOfStarts<Advisor>);

// ---- what is no slip ----------------------------------------------------------------------------------------------

// Of several overloads one is the hook; templates that can be called like it; arguments that have defaults.
struct Overloaded {
  void on_trouble(TroubleListener);
  void on_trouble(int, int);
  template <class Run>
  void recorded(Run);
  template <class Text = std::string>
  Text remark() const;
  void set_experiment_life(std::string, bool, int more = 0);
  void set_experiment_directory(std::filesystem::path, const ExperimentId&) &;
};
static_assert(ReportsTrouble<Overloaded> && ReleasesRecordedRuns<Overloaded> && GivesStartupNotice<Overloaded>);
static_assert(detail::check_hooks_of_service<Overloaded>());

// A wrapper has the hooks of what it wraps.
template <class S>
struct Wrapper {
  void recorded(RunId)
    requires ReleasesRecordedRuns<S>;
  void on_trouble(TroubleListener)
    requires ReportsTrouble<S>;
  template <class Run>
  void resume(Run)
    requires ResumableChannel<S>;
};
static_assert(ReleasesRecordedRuns<Wrapper<Hooks>> && !ReleasesRecordedRuns<Wrapper<None>>);
static_assert(detail::check_hooks_of_service<Wrapper<Hooks>>() && detail::check_hooks_of_service<Wrapper<None>>());

// Names of other roles, a private affair, and a class that nothing derives from.
class Busy final {
 public:
  void request_of();
  void give_up(int);

 private:
  void recorded(int);
  int remark_ = 0;
};
static_assert(detail::check_hooks_of_service<Busy>());

// A name like a hook's, beside the hook.
struct Both {
  const SearchSpace& search_space() const;
  SearchSpace get_search_space() const;
};
static_assert(detail::check_hooks_of_tuner<Both>());

static_assert(detail::check_hooks_of_service<platforms::InProcess>());
static_assert(detail::check_hooks_of_scheduler<scheduling::Unlimited>());
static_assert(detail::check_hooks_of_storage<storage::LocalDirectory>());
static_assert(detail::check_hooks_of_transport<transport::Carried>());
static_assert(detail::check_hooks_of_transport<transport::FileTail>());
static_assert(detail::check_hooks_of_store<datastore::Memory>() && detail::check_hooks_of_store<datastore::Journal>());
static_assert(detail::check_hooks_of_tuner<tuning::Random>() && detail::check_hooks_of_tuner<tuning::Grid>());
static_assert(detail::check_hooks_of_assessor<assessing::MedianStop>() && detail::check_hooks_of_advisor<Advisor>());

// ---- flags --------------------------------------------------------------------------------------------------------

template <bool value>
struct Flags {
  static constexpr bool hears_every_final = value;
  static constexpr bool brings_commands = value;
  static constexpr bool stops_no_trial = value;
  static constexpr bool hands_out_gpus = value;
  static constexpr bool ends_come_last = value;
  static constexpr bool multi_phase = value;
};
static_assert(hears_every_final<Flags<true>> && !hears_every_final<Flags<false>> && !hears_every_final<None>);
static_assert(brings_commands<Flags<true>> && !brings_commands<Flags<false>> && !brings_commands<None>);
static_assert(stops_no_trial<Flags<true>> && !stops_no_trial<Flags<false>> && !stops_no_trial<None>);
static_assert(ends_come_last<Flags<true>> && !ends_come_last<Flags<false>> && !ends_come_last<None>);
static_assert(hands_out_gpus<Flags<true>> && !hands_out_gpus<Flags<false>> && hands_out_gpus<None>);
static_assert(multi_phase<Flags<true>> && !multi_phase<Flags<false>> && multi_phase<None>);
static_assert(stops_no_trial<assessing::None> && !stops_no_trial<assessing::MedianStop>);
static_assert(!hands_out_gpus<scheduling::Unlimited> && ends_come_last<platforms::InProcess>);
static_assert(detail::check_hooks_of_advisor<Flags<false>>() && detail::check_hooks_of_transport<Flags<true>>());
static_assert(detail::check_hooks_of_assessor<Flags<false>>() && detail::check_hooks_of_scheduler<Flags<false>>());

}  // namespace
