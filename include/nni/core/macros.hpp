#pragma once

/// @file
/// Build modes and named compiler defects.
///
/// Header-only mode is the default: every header pulls in its own bodies. A build that compiles the
/// bodies once (target `nni::compiled`) defines `NNI_SEPARATE_COMPILATION` for the library and all
/// users alike.

#if defined(NNI_SEPARATE_COMPILATION)
#define NNI_HEADER_ONLY 0
#define NNI_INLINE
#define NNI_LAZY
#define NNI_LAZY_BODY
#else
#define NNI_HEADER_ONLY 1
#define NNI_INLINE inline
#define NNI_LAZY template <class = void>
#define NNI_LAZY_BODY \
  template <class>    \
  inline
#endif

// `NNI_INLINE` stands before a body of an .ipp file. `NNI_LAZY` stands before the declaration of a function that a small
// program does not call, and `NNI_LAZY_BODY` before its body (`NNI_LAZY NNI_INLINE` where the body is the declaration):
// where bodies are compiled once they mean nothing, in header-only mode they make a function template that nobody gives
// arguments. g++ compiles every inline coroutine that it has read, used or not, and everything that it awaits; of other
// inline functions it instantiates every template that they call. A template it compiles when somebody calls it.

/// Set where g++ 12 destroys some temporaries of a statement with `co_await` twice
/// (see nni/async/awaitable.hpp for the rules that follow).
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ <= 12
#define NNI_GCC12_COROUTINES 1
#else
#define NNI_GCC12_COROUTINES 0
#endif

// Optional parts: a part may add declarations, never change one.
#if !defined(NNI_WITH_SQLITE)
#define NNI_WITH_SQLITE 0
#endif
#if !defined(NNI_WITH_HTTP)
#define NNI_WITH_HTTP 0
#endif
#if !defined(NNI_WITH_PROCESS)
#define NNI_WITH_PROCESS 0
#endif
