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
/// Held as JSON text, exactly as the tuner wrote it: key order, spelling of numbers and Python's extended
/// encodings survive the way from tuner to trial (docs/formats/trial-channel.md).
class Parameters {
 public:
  /// No parameters: `{}`.
  Parameters() : text_("{}") {}

  /// @param text  a JSON object; it is kept verbatim and not checked here, see `parse`
  explicit Parameters(std::string text) : text_(std::move(text)) {}

  /// @param object  members become parameters, in their order
  explicit Parameters(const boost::json::object& object);

  /// Checks that the text is a JSON object.
  [[nodiscard]] static Result<Parameters> parse(std::string text);

  /// The JSON text.
  [[nodiscard]] const std::string& text() const& noexcept { return text_; }
  /// The JSON text, moved out.
  [[nodiscard]] std::string text() && noexcept { return std::move(text_); }

  /// The parsed value. @throws Error `Errc::protocol` when the text is not JSON.
  [[nodiscard]] boost::json::value to_json() const;

  /// The value of one parameter.
  ///
  /// @tparam T    `double`, `bool`, `std::string`, an integer type, or `boost::json::value`
  /// @param name  its key; keys of a nested choice are joined with a slash, `optimizer/momentum`
  /// @throws Error  `Errc::not_found` when there is none, `Errc::protocol` when it is of another type;
  ///                both list what there is
  template <class T>
  [[nodiscard]] T get(std::string_view name) const;

  /// Like `get`, nothing when there is no such parameter.
  template <class T>
  [[nodiscard]] std::optional<T> find(std::string_view name) const {
    if (!contains(name)) return std::nullopt;
    return get<T>(name);
  }

  /// True when there is a parameter of this name.
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

/// Writes the text of parameters piece by piece, without an intermediate tree.
class ParametersWriter {
 public:
  ParametersWriter() { text_.reserve(48); }

  /// Adds a member.
  /// @param name  its key
  /// @param value  its value; numbers keep every digit that matters
  ParametersWriter& add(std::string_view name, double value) {
    key(name);
    append_json_number(text_, value);
    return *this;
  }
  /// Adds a member.
  /// @param name  its key
  /// @param value  its value; numbers keep every digit that matters
  ParametersWriter& add(std::string_view name, std::string_view value) {
    key(name);
    append_json_string(text_, value);
    return *this;
  }
  /// Adds a member.
  /// @param name  its key
  /// @param value  its value; numbers keep every digit that matters
  ParametersWriter& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  /// Adds a member.
  /// @param name  its key
  /// @param value  its value; numbers keep every digit that matters
  ParametersWriter& add(std::string_view name, bool value) { return add_raw(name, value ? "true" : "false"); }
  /// Adds a member.
  /// @param name  its key
  /// @param value  its value; numbers keep every digit that matters
  template <std::integral I>
  ParametersWriter& add(std::string_view name, I value) {
    if constexpr (std::is_unsigned_v<I> && sizeof(I) == sizeof(std::int64_t))
      if (value > static_cast<I>(std::numeric_limits<std::int64_t>::max())) return add_raw(name, std::to_string(value));
    key(name);
    append_json_integer(text_, static_cast<std::int64_t>(value));
    return *this;
  }

  /// Adds the member `name` whose value is JSON text already, `json_text`.
  ParametersWriter& add_raw(std::string_view name, std::string_view json_text) {
    key(name);
    text_ += json_text;
    return *this;
  }

  /// Ends the object. The writer is empty afterwards.
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
                                      ", which does not fit into the integer type it was asked for");
    return static_cast<T>(value);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<T>(get_number(name));
  } else if constexpr (std::same_as<T, std::string>) {
    return get_string(name);
  } else {
    static_assert(std::same_as<T, boost::json::value>,
                  "a parameter is read as double, an integer type, bool, std::string or boost::json::value");
    // The generic lambda makes the call depend on T: the complete type is needed only where a value is asked for.
    return [name](const auto& self) { return self.get_value(name); }(*this);
  }
}

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/core/parameters_inl.hpp>
#endif
