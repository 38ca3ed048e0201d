#pragma once

/// @file
/// What the compiler says about a policy with a member that was meant as a hook (nni/concepts/hooks.hpp) and is none: one
/// sentence that names the policy, the member and the declaration.
///
/// A hook is optional, so a slip in its declaration would otherwise be a hook that is never called. Of a member that exists
/// by the name of a hook this is certain. Of names that nobody knows it is not, so only some slips in names are known.

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <nni/concepts/data_store.hpp>
#include <nni/concepts/hooks.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/concepts/training_service.hpp>

namespace nni::detail {

/// Converts to whatever a parameter wants.
struct AnyArgument {
  template <class T>
  operator T&() const noexcept;  // NOLINT(google-explicit-constructor)
};

// NOLINTBEGIN(bugprone-macro-parentheses): types and names are no expressions.

// True for a member that can be named, and for one of several overloads or a template that can be called somehow. A member
// whose own constraint is not satisfied is none: that is how a wrapper passes hooks on.
#define NNI_HAS_MEMBER(Type, Name)                                            \
  (                                                                           \
      requires { &Type::Name; } || requires(Type& t) { t.Name(); } ||         \
      requires(Type& t, const AnyArgument& any) { t.Name(any); } ||           \
      requires(Type& t, const AnyArgument& any) { t.Name(any, any); } ||      \
      requires(Type& t, const AnyArgument& any) { t.Name(any, any, any); } || \
      requires(Type& t, const AnyArgument& any) { t.Name(any, any, any, any); })

// `Is` says that the member is the hook, `Concept` is its name for people.
#define NNI_HOOK_IF(Who, Type, Is, Name, Concept, Declaration)                                   \
  static_assert((Is) || !NNI_HAS_MEMBER(Type, Name),                                             \
                "the " Who " policy has a member `" #Name "` that is not the hook nni::" Concept \
                ": declare it as a public " Declaration ", or give it another name")

#define NNI_HOOK(Who, Type, Concept, Name, Declaration) \
  NNI_HOOK_IF(Who, Type, Concept<Type>, Name, #Concept, "`" Declaration "`")

#define NNI_FLAG(Who, Type, Name)                                                                \
  NNI_HOOK_IF(                                                                                   \
      Who, Type, requires { typename std::bool_constant<Type::Name>; }, Name, #Name " (a flag)", \
      "`static constexpr bool " #Name " = ...`")

// A name that the hook does not have. A policy that has the hook may use it for something else.
#define NNI_SLIP(Who, Is, Type, Name, Declaration)   \
  static_assert((Is) || !NNI_HAS_MEMBER(Type, Name), \
                "the " Who " policy has a member `" #Name "`, which nothing calls: the hook is `" Declaration "`")

// NOLINTEND(bugprone-macro-parentheses)

#define NNI_DIRECTORY_HOOK(Who, Type)                                                           \
  NNI_HOOK(Who, Type, UsesExperimentDirectory, set_experiment_directory,                        \
           "void set_experiment_directory(const std::filesystem::path&, const ExperimentId&)"); \
  NNI_SLIP(Who, UsesExperimentDirectory<Type>, Type, set_experiment_dir,                        \
           "void set_experiment_directory(const std::filesystem::path&, const ExperimentId&)")

#define NNI_TROUBLE_HOOK(Who, Type)                                                          \
  NNI_HOOK(Who, Type, ReportsTrouble, on_trouble, "void on_trouble(TroubleListener)");       \
  NNI_SLIP(Who, ReportsTrouble<Type>, Type, on_troubel, "void on_trouble(TroubleListener)"); \
  NNI_SLIP(Who, ReportsTrouble<Type>, Type, on_troubles, "void on_trouble(TroubleListener)")

#define NNI_ADVERTISE_HOOK(Who, Type) NNI_HOOK(Who, Type, AdvertisesAddress, advertise, "void advertise(std::string)")

template <class S>
consteval bool check_hooks_of_service() {
  NNI_DIRECTORY_HOOK("training service", S);
  NNI_TROUBLE_HOOK("training service", S);
  NNI_HOOK("training service", S, UsesExperimentLife, set_experiment_life,
           "void set_experiment_life(const std::string&, bool)");
  NNI_HOOK("training service", S, ReleasesRecordedRuns, recorded, "void recorded(RunId)");
  NNI_HOOK("training service", S, GivesStartupNotice, remark, "std::string remark()");
  NNI_SLIP("training service", GivesStartupNotice<S>, S, remarks, "std::string remark()");
  NNI_HOOK(
      "training service", S, ResumableService, adopt, "awaitable<std::vector<JobReport>> adopt(std::vector<Intent>)");
  NNI_HOOK("training service", S, LogSource, fetch_log, "awaitable<std::string> fetch_log(RunId, std::string)");
  if constexpr (CarriesMessages<S>) {
    NNI_FLAG("training service", S, ends_come_last);
    NNI_HOOK("training service", S, PreparesFiles, prepare, "awaitable<void> prepare(const TrialJobForm&)");
    NNI_HOOK("training service", S, ResumableChannel, resume, "void resume(RunId)");
  }
  return true;
}

/// Apart, because only a training session asks for these, and they need the whole of `boost::json::value`.
template <class S>
consteval bool check_configuration_of_service() {
  if constexpr (!ConfigurableService<S>) {
    NNI_HOOK_IF(
        "training service", S,
        requires(const S& service) {
          { service.cluster_metadata_keys() } -> std::same_as<std::span<const std::string_view>>;
        }, cluster_metadata_keys, "ConfigurableService",
        "`std::span<const std::string_view> cluster_metadata_keys() const`");
    NNI_HOOK_IF(
        "training service", S,
        requires(S& service, std::string key, const boost::json::value& value) {
          { service.set_cluster_metadata(key, value) } -> std::same_as<void>;
        }, set_cluster_metadata, "ConfigurableService",
        "`void set_cluster_metadata(const std::string&, const boost::json::value&)`");
    // The last, which also says what is missing where one or two are as they should be.
    static_assert(
        !NNI_HAS_MEMBER(S, cluster_metadata_keys) && !NNI_HAS_MEMBER(S, set_cluster_metadata) &&
            !NNI_HAS_MEMBER(S, get_cluster_metadata),
        "the training service policy has some of the operations of nni::ConfigurableService, and needs all: "
        "`cluster_metadata_keys`, `set_cluster_metadata` and `boost::json::value get_cluster_metadata(const "
        "std::string&) const`");
  }
  return true;
}

template <class S>
consteval bool check_hooks_of_scheduler() {
  NNI_FLAG("scheduler", S, hands_out_gpus);
  NNI_SLIP("scheduler", false, S, hand_out_gpus, "static constexpr bool hands_out_gpus");
  NNI_SLIP("scheduler", false, S, hands_out_gpu, "static constexpr bool hands_out_gpus");
  NNI_ADVERTISE_HOOK("scheduler", S);
  return true;
}

template <class S>
consteval bool check_hooks_of_storage() {
  NNI_DIRECTORY_HOOK("storage", S);
  NNI_HOOK("storage", S, WatchableStorage, changed, "awaitable<void> changed(RemotePath)");
  NNI_ADVERTISE_HOOK("storage", S);
  return true;
}

template <class T>
consteval bool check_hooks_of_transport() {
  NNI_DIRECTORY_HOOK("metric transport", T);
  NNI_HOOK_IF("metric transport", T, PreparesRuns<T> || PreparesFiles<T>, prepare, "PreparesRuns or nni::PreparesFiles",
              "`void prepare(const TrialJobForm&)`, or one that returns awaitable<void>");
  NNI_HOOK("metric transport", T, ResumableChannel, resume, "void resume(RunId)");
  NNI_ADVERTISE_HOOK("metric transport", T);
  NNI_FLAG("metric transport", T, ends_come_last);
  NNI_FLAG("metric transport", T, multi_phase);
  NNI_SLIP("metric transport", false, T, end_comes_last, "static constexpr bool ends_come_last");
  NNI_SLIP("metric transport", false, T, multiphase, "static constexpr bool multi_phase");
  return true;
}

template <class D>
consteval bool check_hooks_of_store() {
  NNI_DIRECTORY_HOOK("data store", D);
  NNI_TROUBLE_HOOK("data store", D);
  NNI_HOOK("data store", D, StopsRetrying, give_up, "void give_up()");
  NNI_HOOK("data store", D, HasDirectory, directory, "const std::filesystem::path& directory() const");
  NNI_ADVERTISE_HOOK("data store", D);
  return true;
}

template <class T>
consteval bool check_hooks_of_tuner() {
  NNI_HOOK("tuner", T, BringsSearchSpace, search_space, "const SearchSpace& search_space() const");
  NNI_SLIP("tuner", BringsSearchSpace<T>, T, serch_space, "const SearchSpace& search_space() const");
  NNI_SLIP("tuner", BringsSearchSpace<T>, T, searchspace, "const SearchSpace& search_space() const");
  NNI_SLIP("tuner", BringsSearchSpace<T>, T, get_search_space, "const SearchSpace& search_space() const");
  NNI_HOOK("tuner", T, HasSeed, seed, "std::uint64_t seed() const");
  NNI_HOOK_IF("tuner", T, Reseedable<T>, reseed, "Reseedable",
              "`void reseed(std::uint64_t)` beside `std::uint64_t seed() const`");
  NNI_HOOK("tuner", T, AdoptsUnfinished, adopt, "void adopt(ParameterId, const Parameters&)");
  return true;
}

template <class A>
consteval bool check_hooks_of_assessor() {
  NNI_FLAG("assessor", A, stops_no_trial);
  NNI_SLIP("assessor", false, A, stops_no_trials, "static constexpr bool stops_no_trial");
  return true;
}

template <class A>
consteval bool check_hooks_of_advisor() {
  NNI_HOOK("advisor", A, BringsSearchSpace, search_space, "const SearchSpace& search_space() const");
  NNI_SLIP("advisor", BringsSearchSpace<A>, A, serch_space, "const SearchSpace& search_space() const");
  NNI_HOOK_IF("advisor", A, WrapsTuner<A>, tuner, "WrapsTuner",
              "`T& tuner()` and `const T& tuner() const` with a T that models nni::Tuner");
  NNI_HOOK("advisor", A, UpdatesSearchSpace, update_search_space, "void update_search_space(const SearchSpace&)");
  NNI_HOOK("advisor", A, RequestsResources, request_of, "std::optional<ResourceRequest> request_of(TrialId)");
  NNI_HOOK("advisor", A, CompletesForms, complete, "void complete(TrialId, TrialJobForm&)");
  NNI_HOOK("advisor", A, NotifiedOfStarts, trial_started, "void trial_started(RunId)");
  NNI_HOOK("advisor", A, ReplaysTrials, replay, "void replay(const TrialOutcome&, std::vector<double>)");
  NNI_HOOK("advisor", A, ReplaysUnfinished, replay_unfinished,
           "void replay_unfinished(ParameterId, const Parameters&, RunId, std::vector<double>)");
  NNI_HOOK("advisor", A, ImportsResults, import_result, "void import_result(const ResultImported&)");
  NNI_SLIP("advisor", ImportsResults<A>, A, import_results, "void import_result(const ResultImported&)");
  NNI_FLAG("advisor", A, hears_every_final);
  NNI_FLAG("advisor", A, brings_commands);
  NNI_SLIP("advisor", false, A, hears_all_finals, "static constexpr bool hears_every_final");
  NNI_SLIP("advisor", false, A, hears_every_finals, "static constexpr bool hears_every_final");
  NNI_SLIP("advisor", false, A, brings_command, "static constexpr bool brings_commands");
  return true;
}

#undef NNI_ADVERTISE_HOOK
#undef NNI_TROUBLE_HOOK
#undef NNI_DIRECTORY_HOOK
#undef NNI_SLIP
#undef NNI_FLAG
#undef NNI_HOOK
#undef NNI_HOOK_IF
#undef NNI_HAS_MEMBER

}  // namespace nni::detail
