#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include <nni/concepts/roles.hpp>

namespace nni::detail {

/// True when a policy declares the role.
template <class Policy, class Role>
inline constexpr bool has_role = false;
template <class Policy, class Role>
  requires requires { typename Policy::role; }
inline constexpr bool has_role<Policy, Role> = std::same_as<typename Policy::role, Role>;

/// True when a policy declares any role.
template <class Policy>
inline constexpr bool has_any_role = requires { typename Policy::role; };

/// True when the role that a policy declares is one that an experiment has a place for.
template <class Policy>
inline constexpr bool has_known_role =
    has_role<Policy, role::training_service> || has_role<Policy, role::scheduler> || has_role<Policy, role::storage> ||
    has_role<Policy, role::metric_transport> || has_role<Policy, role::tuner> || has_role<Policy, role::assessor> ||
    has_role<Policy, role::advisor> || has_role<Policy, role::data_store>;

/// Number of policies with a role.
template <class Role, class... Policies>
inline constexpr std::size_t count_role = (std::size_t{0} + ... + (has_role<Policies, Role> ? 1 : 0));

/// The type of the policy with a role, or the default.
template <class Role, class Default, class... Policies>
struct PolicyOr {
  using type = Default;
};
template <class Role, class Default, class First, class... Rest>
struct PolicyOr<Role, Default, First, Rest...> {
  using type = typename std::conditional_t<
      has_role<First, Role>, std::type_identity<First>, PolicyOr<Role, Default, Rest...>>::type;
};
template <class Role, class Default, class... Policies>
using policy_or = typename PolicyOr<Role, Default, Policies...>::type;

/// Moves the policy with a role out of a pack, or makes the default.
template <class Role, class Default, class... Policies>
policy_or<Role, Default, Policies...> take_policy(std::tuple<Policies...>& policies) {
  using Wanted = policy_or<Role, Default, Policies...>;
  if constexpr (count_role<Role, Policies...> == 0) {
    return Default{};
  } else {
    return std::get<Wanted>(std::move(policies));
  }
}

}  // namespace nni::detail
