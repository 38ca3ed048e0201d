#pragma once

/// @file
/// What the compiler says about a policy that breaks the contract of its role: one sentence that names the policy, the
/// concept and the promise, in the first error.
///
/// A concept answers yes or no, and compilers explain a no by pages of constraints. So a composition asks these functions:
/// they look at the operations one by one, only when the concept is not modelled, and cost nothing when it is.

#include <concepts>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nni/concepts/advisor.hpp>
#include <nni/concepts/assessor.hpp>
#include <nni/concepts/check_hooks.hpp>
#include <nni/concepts/data_store.hpp>
#include <nni/concepts/metric_transport.hpp>
#include <nni/concepts/policy_set.hpp>
#include <nni/concepts/scheduler.hpp>
#include <nni/concepts/storage.hpp>
#include <nni/concepts/training_service.hpp>
#include <nni/concepts/tuner.hpp>

namespace nni::detail {

// A message of static_assert is a literal, so only macros can put names into it. `NNI_BREAKS` says who breaks which
// contract; NNI_WHO and NNI_CONCEPT are set for each table.
#define NNI_BREAKS "the " NNI_WHO " policy does not model nni::" NNI_CONCEPT

#define NNI_WORD(...) __VA_OPT__(" " #__VA_ARGS__)

// NOLINTBEGIN(bugprone-macro-parentheses): types and names are no expressions.
#define NNI_DECLARATION(Result, Name, Parameters, Const, Noexcept) \
  "`" #Result " " #Name #Parameters NNI_WORD(Const) NNI_WORD(Noexcept) "`"

// The sentences of one operation.
#define NNI_EXPLAIN(Promise, Result, Name, Parameters, Const, Noexcept)                                            \
  static_assert(                                                                                                   \
      requires { NNI_CALL(Name, Parameters, Const); }, NNI_BREAKS                                                  \
      " (promise " #Promise "): it has no operation " NNI_DECLARATION(Result, Name, Parameters, Const, Noexcept)); \
  static_assert(                                                                                                   \
      !requires {                                                                                                  \
        NNI_CALL(Name, Parameters, Const);                                                                         \
      } || (true NNI_AND_HAS(Promise, Result, Name, Parameters, Const, Noexcept)), NNI_BREAKS                      \
      " (promise " #Promise                                                                                        \
      "): its operation is declared otherwise than " NNI_DECLARATION(Result, Name, Parameters, Const, Noexcept));
// NOLINTEND(bugprone-macro-parentheses)

#define NNI_EXPLAIN_MOVE              \
  static_assert(std::movable<Policy>, \
                NNI_BREAKS ": it cannot be moved and move-assigned, and an experiment takes its policies by value")

#define NNI_WHO "training service"
#define NNI_CONCEPT "TrainingService"
/// @tparam Policy  what stands first in a composition
template <class Policy>
consteval bool check_service() {
  if constexpr (!TrainingService<Policy>) {
    static_assert(
        has_any_role<Policy>,
        "the first policy of an Experiment does not model nni::TrainingService: it declares no role; give the "
        "service first, and a callable as nni::platforms::InProcess{callable}");
    static_assert(!has_any_role<Policy> || has_role<Policy, role::training_service>,
                  "the first policy of an Experiment does not model nni::TrainingService: it has the role of another "
                  "policy; the training service comes first");
    if constexpr (has_role<Policy, role::training_service>) {
      NNI_EXPLAIN_MOVE;
      static_assert(
          requires { typename Policy::mount_type; },
          NNI_BREAKS ": it names no `mount_type`; nni::NoMount is for services that need no storage");
      static_assert(
          requires {
            { Policy::platform } -> std::convertible_to<std::string_view>;
          }, NNI_BREAKS ": it lacks `static constexpr std::string_view platform`, its name in records");
      NNI_TRAINING_SERVICE(NNI_EXPLAIN)
    }
  } else {
    static_assert(check_hooks_of_service<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "scheduler"
#define NNI_CONCEPT "Scheduler"
template <class Policy>
consteval bool check_scheduler() {
  if constexpr (!Scheduler<Policy>) {
    NNI_EXPLAIN_MOVE;
    NNI_SCHEDULER(NNI_EXPLAIN)
  } else {
    static_assert(check_hooks_of_scheduler<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "storage"
#define NNI_CONCEPT "Storage"
template <class Policy>
consteval bool check_storage() {
  if constexpr (!Storage<Policy>) {
    NNI_EXPLAIN_MOVE;
    static_assert(
        requires { typename Policy::mount_type; },
        NNI_BREAKS " (promise 6): it names no `mount_type`, which says how trials reach it");
    NNI_STORAGE(NNI_EXPLAIN)
    static_assert(
        !requires { typename Policy::mount_type; } ||
            requires(Policy& storage, TrialId trial) {
              { storage.mount(trial) } -> std::same_as<typename Policy::mount_type>;
            },
        NNI_BREAKS " (promise 6): it has no operation `mount_type mount(TrialId)`");
  } else {
    static_assert(check_hooks_of_storage<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "metric transport"
#define NNI_CONCEPT "MetricTransportOver"
/// @tparam carried  the service brings the messages, so nothing is asked of the transport
template <bool carried, class Policy, class Store>
consteval bool check_transport() {
  if constexpr (!carried && !MetricTransportOver<Policy, Store>) {
    NNI_EXPLAIN_MOVE;
    NNI_TRIAL_CHANNEL(NNI_EXPLAIN)
    NNI_METRIC_TRANSPORT(NNI_EXPLAIN)
  } else if constexpr (!carried) {
    static_assert(check_hooks_of_transport<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "data store"
#define NNI_CONCEPT "DataStore"
template <class Policy>
consteval bool check_store() {
  if constexpr (!DataStore<Policy>) {
    NNI_EXPLAIN_MOVE;
    NNI_DATA_STORE(NNI_EXPLAIN)
  } else {
    static_assert(check_hooks_of_store<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "tuner"
#define NNI_CONCEPT "Tuner"
template <class Policy>
consteval bool check_tuner() {
  if constexpr (!Tuner<Policy>) {
    NNI_EXPLAIN_MOVE;
    NNI_TUNER(NNI_EXPLAIN)
  } else {
    static_assert(check_hooks_of_tuner<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

/// Neither `start` nor `generate` needs to know a space, so a tuner keeps every promise of its concept without one.
template <class T>
consteval bool check_space_of_tuner() {
  static_assert(
      !Tuner<T> || BringsSearchSpace<T>,
      "the tuner policy brings no search space, and an Experiment would run on an empty one: give it a public "
      "`const SearchSpace& search_space() const` (nni::BringsSearchSpace)");
  return true;
}

/// An advisor without a space is given an empty one, because it may know what to try without it. A tuner inside does not.
template <class A>
consteval bool check_space_of_advisor() {
  if constexpr (WrapsTuner<A> && !BringsSearchSpace<A>)
    static_assert(
        BringsSearchSpace<tuner_of<A>>,
        "the tuner of the advisor policy brings no search space, and an Experiment would run on an empty one: give the "
        "tuner, or the advisor, a public `const SearchSpace& search_space() const` (nni::BringsSearchSpace)");
  return true;
}

#define NNI_WHO "assessor"
#define NNI_CONCEPT "Assessor"
template <class Policy>
consteval bool check_assessor() {
  if constexpr (!Assessor<Policy>) {
    NNI_EXPLAIN_MOVE;
    NNI_ASSESSOR(NNI_EXPLAIN)
  } else {
    static_assert(check_hooks_of_assessor<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#define NNI_WHO "advisor"
#define NNI_CONCEPT "Advisor"
template <class Policy>
consteval bool check_advisor() {
  if constexpr (!Advisor<Policy>) {
    NNI_EXPLAIN_MOVE;
    NNI_ADVISOR(NNI_EXPLAIN)
  } else {
    static_assert(check_hooks_of_advisor<Policy>());
  }
  return true;
}
#undef NNI_CONCEPT
#undef NNI_WHO

#undef NNI_EXPLAIN_MOVE
#undef NNI_EXPLAIN
#undef NNI_DECLARATION
#undef NNI_WORD
#undef NNI_BREAKS
#undef NNI_TRAINING_SERVICE
#undef NNI_SCHEDULER
#undef NNI_STORAGE
#undef NNI_TRIAL_CHANNEL
#undef NNI_METRIC_TRANSPORT
#undef NNI_DATA_STORE
#undef NNI_TUNER
#undef NNI_ASSESSOR
#undef NNI_ADVISOR

/// One policy for each role: the service apart, which comes first.
template <class... Policies>
consteval bool check_roles() {
  static_assert((has_any_role<Policies> && ...),
                "a policy of this Experiment models no concept of nni: it declares no role "
                "(`using role = nni::role::tuner;` or another of nni/concepts/roles.hpp)");
  static_assert(((!has_any_role<Policies> || has_known_role<Policies>) && ...),
                "a policy of this Experiment models no concept of nni: its role is none of nni/concepts/roles.hpp");
  static_assert(
      count_role<role::training_service, Policies...> == 0,
      "two training services given: an Experiment has one policy that models nni::TrainingService, the first");
  static_assert(count_role<role::scheduler, Policies...> <= 1,
                "two schedulers given: an Experiment has one policy that models nni::Scheduler");
  static_assert(count_role<role::storage, Policies...> <= 1,
                "two storages given: an Experiment has one policy that models nni::Storage");
  static_assert(count_role<role::metric_transport, Policies...> <= 1,
                "two metric transports given: an Experiment has one policy that models nni::MetricTransportOver");
  static_assert(count_role<role::data_store, Policies...> <= 1,
                "two data stores given: an Experiment has one policy that models nni::DataStore");
  static_assert(count_role<role::tuner, Policies...> <= 1,
                "two tuners given: an Experiment has one policy that models nni::Tuner");
  static_assert(count_role<role::assessor, Policies...> <= 1,
                "two assessors given: an Experiment has one policy that models nni::Assessor");
  static_assert(count_role<role::advisor, Policies...> <= 1,
                "two advisors given: an Experiment has one policy that models nni::Advisor");
  static_assert(
      count_role<role::advisor, Policies...> == 0 ||
          count_role<role::tuner, Policies...> + count_role<role::assessor, Policies...> == 0,
      "an advisor and a tuner or assessor given: a policy that models nni::Advisor takes the place of nni::Tuner and "
      "nni::Assessor; give one or the other");
  return true;
}

}  // namespace nni::detail
