#pragma once

#include <concepts>
#include <type_traits>

namespace nni {

/// True for a policy that declares the role `R`: `using role = nni::role::tuner;`.
///
/// It stands apart from the vocabulary of awaitables, so that what is synchronous (tuners, assessors, schedulers)
/// can be checked and used without Asio.
///
/// @tparam P  policy type
/// @tparam R  a tag of nni/concepts/roles.hpp
template <class P, class R>
concept PlaysRole = std::same_as<typename std::remove_cvref_t<P>::role, R>;

}  // namespace nni
