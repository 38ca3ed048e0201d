#pragma once

/// @file
/// One table for each contract: the operations of a concept, as people declare them. The concept follows from it, and so does
/// what the compiler says about a policy that lacks one of them (nni/concepts/check.hpp).
///
/// A table is a macro that hands each operation to another macro: the promise that it belongs to, its result, its name, its
/// parameters, and `const` and `noexcept` where it is that. The policy is called `Policy` in the concept. An example is
/// nni/concepts/scheduler.hpp.

#include <concepts>
#include <utility>

// NOLINTBEGIN(bugprone-macro-parentheses): types and names are no expressions.

// A value of each type, at most three.
#define NNI_VALUE_PICK(A, B, C, Picked, ...) Picked
#define NNI_VALUE_1(A) std::declval<A>()
#define NNI_VALUE_2(A, B) std::declval<A>(), std::declval<B>()
#define NNI_VALUE_3(A, B, C) std::declval<A>(), std::declval<B>(), std::declval<C>()
#define NNI_VALUES(...) __VA_OPT__(NNI_VALUE_PICK(__VA_ARGS__, NNI_VALUE_3, NNI_VALUE_2, NNI_VALUE_1)(__VA_ARGS__))

// The call of an operation, as an expression.
#define NNI_CALL(Name, Parameters, Const) std::declval<Const Policy&>().Name(NNI_VALUES Parameters)

// The part of a concept that asks for an operation.
#define NNI_AND_HAS(Promise, Result, Name, Parameters, Const, Noexcept) \
  &&requires {                                                          \
    { NNI_CALL(Name, Parameters, Const) }                               \
    Noexcept->std::same_as<Result>;                                     \
  }

// NOLINTEND(bugprone-macro-parentheses)
