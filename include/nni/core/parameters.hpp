#pragma once

#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/json/fwd.hpp>

#include <nni/core/json.hpp>
#include <nni/core/result.hpp>

namespace nni {

/// The values that a tuner chose for one trial, as the trial sees them.
///
/// Held as JSON text, verbatim from the tuner: the trial receives its key order, its spelling of numbers and
/// Python's extended encodings unchanged (docs/formats/trial-channel.md).
class Parameters {
 public:
  /// Creates an empty object, `{}`.
  Parameters() : text_("{}") {}

  /// @param text  a JSON object; kept verbatim and not validated here, see `parse`
  explicit Parameters(std::string text) : text_(std::move(text)) {}

  /// @param object  its members become the parameters, in the same order
  explicit Parameters(const boost::json::object& object);

  /// Validates that the text is a JSON object.
  [[nodiscard]] static Result<Parameters> parse(std::string text);

  /// Returns the JSON text.
  [[nodiscard]] const std::string& text() const& noexcept { return text_; }
  /// Returns the JSON text, moved out.
  [[nodiscard]] std::string text() && noexcept { return std::move(text_); }

  /// Returns the parsed value. @throws Error `Errc::protocol` when the text is not JSON.
  [[nodiscard]] boost::json::value to_json() const;

  /// Returns the value of one parameter.
  ///
  /// @tparam T    `double`, `bool`, `std::string`, an integer type, or `boost::json::value`
  /// @param name  its key; keys of a nested choice are joined with a slash, `optimizer/momentum`
  /// @throws Error  `Errc::not_found` if there is none, `Errc::protocol` if it has another type;
  ///                both list the existing parameters
  template <class T>
  [[nodiscard]] T get(std::string_view name) const;

  /// Returns the value of one parameter like `get`, or nothing if there is no such parameter.
  template <class T>
  [[nodiscard]] std::optional<T> find(std::string_view name) const {
    if (!contains(name)) return std::nullopt;
    return get<T>(name);
  }

  /// Returns true if there is a parameter of this name.
  [[nodiscard]] bool contains(std::string_view name) const;

  friend bool operator==(const Parameters&, const Parameters&) = default;

 private:
  double get_number(std::string_view name) const;
  std::int64_t get_integer(std::string_view name) const;
  std::uint64_t get_unsigned(std::string_view name) const;
  bool get_bool(std::string_view name) const;
  std::string get_string(std::string_view name) const;
  boost::json::value get_value(std::string_view name) const;

  std::string text_;
};

/// Prints the JSON text.
std::ostream& operator<<(std::ostream& out, const Parameters& parameters);

/// A writer of the JSON text of parameters, member by member, without an intermediate tree.
class ParametersWriter {
 public:
  ParametersWriter() { text_.reserve(48); }

  /// Adds a member.
  /// @param value  its value; a number reads back exactly
  ParametersWriter& add(std::string_view name, double value) {
    key(name);
    append_json_number(text_, value);
    return *this;
  }
  /// Adds a member.
  /// @param value  its value; a number reads back exactly
  ParametersWriter& add(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(text_, value);
    return *this;
  }
  /// Adds a member.
  /// @param value  its value; a number reads back exactly
  ParametersWriter& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  /// Adds a member.
  /// @param value  its value; a number reads back exactly
  ParametersWriter& add(std::string_view name, bool value) { return add_raw(name, value ? "true" : "false"); }
  /// Adds a member.
  /// @param value  its value; a number reads back exactly
  template <std::integral I>
  ParametersWriter& add(std::string_view name, I value) {
    if constexpr (std::is_unsigned_v<I> && sizeof(I) == sizeof(std::int64_t))
      if (value > static_cast<I>(std::numeric_limits<std::int64_t>::max())) return add_raw(name, std::to_string(value));
    key(name);
    append_json_integer(text_, static_cast<std::int64_t>(value));
    return *this;
  }

  /// Adds the member `name`, whose value is `json_text`, verbatim.
  ParametersWriter& add_raw(std::string_view name, std::string_view json_text) {
    key(name);
    text_ += json_text;
    return *this;
  }

  /// Ends the object and returns it. The writer is empty afterwards.
  [[nodiscard]] Parameters finish() {
    text_ += text_.empty() ? "{}" : "}";
    return Parameters{std::exchange(text_, {})};
  }

 private:
  void key(std::string_view name) {
    text_ += text_.empty() ? '{' : ',';
    append_json_string(text_, name);
    text_ += ':';
  }

  std::string text_;
};

template <class T>
T Parameters::get(std::string_view name) const {
  if constexpr (std::same_as<T, bool>) {
    return get_bool(name);
  } else if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(std::uint64_t)) {
    return static_cast<T>(get_unsigned(name));
  } else if constexpr (std::integral<T>) {
    const std::int64_t value = get_integer(name);
    if (!std::in_range<T>(value))
      throw Error(Errc::protocol, "parameter \"" + std::string(name) + "\" is " + std::to_string(value) +
                                      ", which does not fit the requested integer type");
    return static_cast<T>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(get_number(name));
  } else if constexpr (std::same_as<T, std::string>) {
    return get_string(name);
  } else {
    static_assert(std::same_as<T, boost::json::value>,
                  "a parameter is read as double, an integer type, bool, std::string or boost::json::value");
    // The generic lambda makes the call depend on T: only callers that ask for a JSON value need the complete type.
    return [name](const auto& self) { return self.get_value(name); }(*this);
  }
}

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/parameters_inl.hpp>
#endif
