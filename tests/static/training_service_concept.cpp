// The smallest services model their concepts; without any one of their obligations they do not.

#include <boost/json.hpp>

#include <nni/concepts/training_service.hpp>
#include <nni/platforms/in_process.hpp>

namespace {

using namespace nni;

struct Smallest {
  using role = nni::role::training_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "smallest";
  Capabilities capabilities() const noexcept;
  awaitable<void> start(Context&);
  awaitable<ResourceSnapshot> resources();
  awaitable<JobId> submit_trial_job(TrialJobForm);
  awaitable<void> cancel_trial_job(RunId, StopReason);
  awaitable<JobEvent> next_event();
  awaitable<void> clean_up();
};
static_assert(TrainingService<Smallest>);
static_assert(TrainingService<platforms::InProcess>);
static_assert(CarriesMessages<platforms::InProcess>);
static_assert(!ResumableService<platforms::InProcess>);
static_assert(!CarriesMessages<Smallest>);
static_assert(!ResumableService<Smallest>);
static_assert(!LogSource<Smallest>);

struct WrongRole : Smallest {
  using role = nni::role::tuner;
};
struct CapabilitiesMayThrow : Smallest {
  Capabilities capabilities() const;
};
struct CannotStart : Smallest {
  void start() = delete;
};
struct HasNoResources : Smallest {
  void resources() = delete;
};
struct SubmitsSilently : Smallest {
  awaitable<void> submit_trial_job(TrialJobForm);
};
struct CannotCancel : Smallest {
  void cancel_trial_job() = delete;
};
struct TellsNothing : Smallest {
  void next_event() = delete;
};
struct CannotCleanUp : Smallest {
  void clean_up() = delete;
};
struct Blocks : Smallest {
  JobEvent next_event();
};
static_assert(!TrainingService<WrongRole>);
static_assert(!TrainingService<CapabilitiesMayThrow>);
static_assert(!TrainingService<CannotStart>);
static_assert(!TrainingService<HasNoResources>);
static_assert(!TrainingService<SubmitsSilently>);
static_assert(!TrainingService<CannotCancel>);
static_assert(!TrainingService<TellsNothing>);
static_assert(!TrainingService<CannotCleanUp>);
static_assert(!TrainingService<Blocks>);

struct Resumable : Smallest {
  awaitable<std::vector<JobReport>> adopt(std::vector<Intent>);
};
static_assert(ResumableService<Resumable>);

struct Carries : Smallest {
  awaitable<TrialMessage> next_message();
  awaitable<void> acknowledge(Receipt);
  awaitable<void> send(RunId, Parameters);
  awaitable<void> settle(RunId);
};
static_assert(CarriesMessages<Carries>);
struct NeverAcknowledges : Carries {
  void acknowledge() = delete;
};
struct NeverSettles : Carries {
  void settle() = delete;
};
static_assert(!CarriesMessages<NeverAcknowledges>);
static_assert(!CarriesMessages<NeverSettles>);

struct ShowsLogs : Smallest {
  awaitable<std::string> fetch_log(RunId, std::string);
};
static_assert(LogSource<ShowsLogs>);

struct Configurable : Smallest {
  std::span<const std::string_view> cluster_metadata_keys() const;
  void set_cluster_metadata(const std::string&, const boost::json::value&);
  boost::json::value get_cluster_metadata(const std::string&) const;
};
static_assert(ConfigurableService<Configurable>);
static_assert(!ConfigurableService<Smallest>);
static_assert(!ConfigurableService<platforms::InProcess>);
struct ListsNoKeys : Configurable {
  void cluster_metadata_keys() = delete;
};
struct SetsNothing : Configurable {
  void set_cluster_metadata() = delete;
};
struct TellsNothingOfKeys : Configurable {
  void get_cluster_metadata() = delete;
};
static_assert(!ConfigurableService<ListsNoKeys>);
static_assert(!ConfigurableService<SetsNothing>);
static_assert(!ConfigurableService<TellsNothingOfKeys>);

struct Polled {
  using role = nni::role::polled_service;
  using mount_type = NoMount;
  static constexpr std::string_view platform = "polled";
  Duration poll_interval() const noexcept;
  awaitable<void> start(Context&);
  awaitable<ResourceSnapshot> resources();
  awaitable<JobId> submit_trial_job(TrialJobForm);
  awaitable<void> cancel_trial_job(RunId, StopReason);
  awaitable<std::vector<JobReport>> poll(std::vector<RunId>);
  awaitable<void> clean_up();
};
static_assert(PolledService<Polled>);
static_assert(!TrainingService<Polled>);
struct NeverPolls : Polled {
  void poll() = delete;
};
static_assert(!PolledService<NeverPolls>);

}  // namespace
