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

// `NNI_INLINE` precedes each body in a file whose name ends in _inl.hpp. `NNI_LAZY` precedes the declaration of a function
// that a small program does not call, and `NNI_LAZY_BODY` its body (`NNI_LAZY NNI_INLINE` where both are one). Where bodies
// are compiled once, both expand to nothing; in header-only mode they make the function a template with a default argument.
// The reason is compile time: g++ compiles every inline coroutine that it parses, used or not, with everything that it
// awaits, and instantiates every template that an inline function calls; it compiles a template only when it is called.

/// Set where g++ 12 destroys some temporaries of a statement with `co_await` twice
/// (see nni/async/awaitable.hpp for the rules that follow).
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ <= 12
#define NNI_GCC12_COROUTINES 1
#else
#define NNI_GCC12_COROUTINES 0
#endif

// NaN marks an inactive parameter, and a trial without a value.
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error nni needs NaN, which -Ofast and -ffast-math take away: add -fno-finite-math-only after them in every unit that includes nni
#endif

// Optional components: the same ones in all units of a program. The entry point of a component (a constructor of its main
// class, or a function) is declared with NNI_NEEDS_...; where the component is off, its use is an error that names it.
#if !defined(NNI_WITH_SQLITE)
#define NNI_WITH_SQLITE 0
#endif
#if NNI_WITH_SQLITE
#define NNI_NEEDS_SQLITE(...) __VA_ARGS__
#else
#define NNI_NEEDS_SQLITE(...) \
  template <class Use = void> \
  __VA_ARGS__ noexcept(::nni::detail::NeedsSqlite<Use>::fulfilled)
#endif
#if !defined(NNI_WITH_HTTP)
#define NNI_WITH_HTTP 0
#endif
#if NNI_WITH_HTTP
#define NNI_NEEDS_HTTP(...) __VA_ARGS__
#else
#define NNI_NEEDS_HTTP(...)   \
  template <class Use = void> \
  __VA_ARGS__ noexcept(::nni::detail::NeedsHttp<Use>::fulfilled)
#endif
#if !defined(NNI_WITH_PROCESS)
#define NNI_WITH_PROCESS 0
#endif
#if NNI_WITH_PROCESS
#define NNI_NEEDS_PROCESS(...) __VA_ARGS__
#else
#define NNI_NEEDS_PROCESS(...) \
  template <class Use = void>  \
  __VA_ARGS__ noexcept(::nni::detail::NeedsProcess<Use>::fulfilled)
#endif

namespace nni::detail {

template <class Use>
inline constexpr bool component_is_on = false;

// Evaluated at each call of an entry point, so that the compiler names the place of the call too.
template <class Use>
struct NeedsSqlite {
  static_assert(
      component_is_on<Use>,
      "this needs the component sqlite, which is off: link nni::sqlite, or define NNI_WITH_SQLITE=1 in all units");
  static constexpr bool fulfilled = true;
};
template <class Use>
struct NeedsHttp {
  static_assert(component_is_on<Use>,
                "this needs the component http, which is off: link nni::http, or define NNI_WITH_HTTP=1 in all units");
  static constexpr bool fulfilled = true;
};
template <class Use>
struct NeedsProcess {
  static_assert(component_is_on<Use>,
                "this needs the component process, which is off: link nni::process, or define NNI_WITH_HTTP=1 and "
                "NNI_WITH_PROCESS=1 in all units");
  static constexpr bool fulfilled = true;
};

}  // namespace nni::detail

// Units that hold the bodies and units that expect them in a library violate the one-definition rule. A linker cannot see
// that, but GNU ld refuses a symbol that is thread-local in some units only, and prints its name (mold accepts it).
#if !NNI_HEADER_ONLY
extern "C" {
extern char nni_some_units_are_header_only_and_others_compiled;  ///< in a linker's error: link one mode only
}
namespace nni::detail {
[[gnu::used]] inline const char* const build_mode = &nni_some_units_are_header_only_and_others_compiled;
}
#else
extern "C" {
[[gnu::used]] inline thread_local char nni_some_units_are_header_only_and_others_compiled = 0;
}
#endif
