#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

#include <nni/core/error.hpp>
#include <nni/core/json.hpp>
#include <nni/core/parameters.hpp>
#include <nni/space/axis.hpp>

namespace nni {

class ChoiceOption;

/// One dimension of a search space as the user writes it. Made by `uniform`, `choice` and the other functions below.
///
/// Nothing is checked here: `SearchSpace` reports everything that is wrong at once.
class Dimension {
 public:
  /// @param key      name of the parameter
  /// @param kind     any kind but `choice`
  /// @param numbers  as in NNI's `_value`
  Dimension(std::string key, DimensionType kind, std::vector<double> numbers);
  /// A choice.
  /// @param key  name of the parameter
  /// @param alternatives  its options
  Dimension(std::string key, std::vector<ChoiceOption> alternatives);

  std::string name;                   ///< key of the parameter
  DimensionType type;                 ///< kind of distribution
  std::vector<double> values;         ///< as in NNI's `_value`: min, max, q, or mu, sigma, q; empty for a choice
  std::vector<ChoiceOption> options;  ///< only for a choice
};

/// One option of a choice: a number, a string, true or false, or a branch with dimensions of its own.
class ChoiceOption {
 public:
  /// An integer, `true` or `false`.
  template <std::integral I>
  ChoiceOption(I value) {  // NOLINT: options are written as plain values
    if constexpr (std::same_as<I, bool>) {
      text_ = value ? "true" : "false";
    } else {
      text_ = std::to_string(value);
      number_ = static_cast<double>(value);
    }
  }
  /// A real number.
  template <std::floating_point F>
  ChoiceOption(F value)
      : text_(to_json_text(static_cast<double>(value))), number_(static_cast<double>(value)) {}  // NOLINT
  /// A string.
  ChoiceOption(std::string_view value) { append_json_string(text_, value); }  // NOLINT
  /// A string.
  ChoiceOption(const char* value) : ChoiceOption(std::string_view(value)) {}  // NOLINT
  /// A string.
  ChoiceOption(const std::string& value) : ChoiceOption(std::string_view(value)) {}  // NOLINT

  /// The branch `name` with `dimensions` of its own, see `nni::branch`.
  ChoiceOption(std::string name, std::vector<Dimension> dimensions)
      : name_(std::move(name)), dimensions_(std::move(dimensions)), branch_(true) {
    append_json_string(text_, name_);
  }

  /// The option as JSON, for a branch its name as JSON.
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

  /// The option as a number, nothing for other types.
  [[nodiscard]] std::optional<double> number() const noexcept { return number_; }

  /// True for an option with dimensions of its own.
  [[nodiscard]] bool is_branch() const noexcept { return branch_; }
  /// The name of a branch; empty for other options.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// The dimensions of a branch; none for other options.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

 private:
  std::string text_;
  std::optional<double> number_;
  std::string name_;
  std::vector<Dimension> dimensions_;
  bool branch_ = false;
};

// The numbers of a dimension are finite, `min` is below `max`, `q` and `sigma` are above 0; a `SearchSpace` that is made of
// others says which are not. Source of all ten: NNI 3.0, search space types.

/// Dimension `name`: a real number in [min, max), every value equally likely; `min` is below `max`.
[[nodiscard]] Dimension uniform(std::string name, double min, double max);

/// Dimension `name`: a multiple of q, or a limit, in [min, max]; `min` is below `max`, `q` above 0. The value is a real
/// number: 16.0, also for q = 1.
[[nodiscard]] Dimension quniform(std::string name, double min, double max, double q);

/// Dimension `name`: a real number in [min, max) whose logarithm is uniform, for learning rates and the like. `min` is
/// above 0 and below `max`.
[[nodiscard]] Dimension loguniform(std::string name, double min, double max);

/// Dimension `name`: like `loguniform`, rounded to multiples of q, within [min, max]; `min` and `q` are above 0.
[[nodiscard]] Dimension qloguniform(std::string name, double min, double max, double q);

/// Dimension `name`: an integer in [min, max): `max` itself is never taken. Both lie between -2^53 and 2^53.
[[nodiscard]] Dimension randint(std::string name, std::int64_t min, std::int64_t max);

/// Dimension `name`: a normal number with mean `mu` and standard deviation `sigma`, above 0; without limits.
[[nodiscard]] Dimension normal(std::string name, double mu, double sigma);

/// Dimension `name`: like `normal` with `mu` and `sigma`, rounded to multiples of `q`, above 0.
[[nodiscard]] Dimension qnormal(std::string name, double mu, double sigma, double q);

/// Dimension `name`: a positive number whose natural logarithm is normal; `mu` and `sigma`, above 0, are those of the
/// logarithm.
[[nodiscard]] Dimension lognormal(std::string name, double mu, double sigma);

/// Dimension `name`: like `lognormal` with `mu` and `sigma`, rounded to multiples of `q`, above 0; it may be 0.
[[nodiscard]] Dimension qlognormal(std::string name, double mu, double sigma, double q);

/// One of several values, or of several branches.
///
/// @param name     key of the parameter
/// @param options  at least one: numbers, strings or booleans in any mixture, `{16, 32, 64}`, or branches only, each with
///                 a name of its own
[[nodiscard]] Dimension choice(std::string name, std::initializer_list<ChoiceOption> options);

/// The same for options that are held in a container or another range.
template <class R>
  requires requires(R& options) {
    std::end(options);
    requires std::constructible_from<ChoiceOption, decltype(*std::begin(options))>;
  }
[[nodiscard]] Dimension choice(std::string name, R&& options) {
  std::vector<ChoiceOption> all;
  for (auto&& option : options) all.emplace_back(option);
  return Dimension(std::move(name), std::move(all));
}

/// An option of a choice that brings dimensions of its own; they exist only where this option is chosen.
///
/// The trial sees `{"kind": {"_name": "conv", "width": 3}}` and reads `kind/_name` and `kind/width`.
///
/// @param name        name of the option
/// @param dimensions  none, or what is to be searched within this option
[[nodiscard]] ChoiceOption branch(std::string name, std::vector<Dimension> dimensions = {});

/// What a tuner may choose from: named dimensions, some of them conditional.
///
/// It is a value: checked when it is made, never changed afterwards, cheap enough to copy.
class SearchSpace {
 public:
  /// No dimensions: every trial gets `{}`.
  SearchSpace() = default;

  /// @param dimensions    each with a name of its own, in the order that parameters have
  /// @throws ConfigError  with everything that is wrong: keys such as `space.lr.max`, the value, and what would be right
  SearchSpace(std::initializer_list<Dimension> dimensions);

  /// The same for dimensions that were put together at run time.
  explicit SearchSpace(std::vector<Dimension> dimensions);

  /// Reads NNI's form: `{"lr": {"_type": "loguniform", "_value": [0.0001, 0.1]}}`.
  ///
  /// @param value  the object
  /// @param key    what the messages call it
  /// @throws ConfigError  with everything that is wrong
  /// Source: NNI 3.0, search space; nested choices are checked as well.
  [[nodiscard]] static SearchSpace from_json(const boost::json::value& value, std::string_view key = "space");

  /// The same from JSON text.
  [[nodiscard]] static SearchSpace from_json(std::string_view text, std::string_view key = "space");
  /// The same from JSON text.
  [[nodiscard]] static SearchSpace from_json(const char* text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }
  /// The same from JSON text.
  [[nodiscard]] static SearchSpace from_json(const std::string& text, std::string_view key = "space") {
    return from_json(std::string_view(text), key);
  }

  /// NNI's form as JSON text. `from_json` of it gives an equal space.
  [[nodiscard]] std::string to_json() const;

  /// The dimensions as the user gave them.
  [[nodiscard]] const std::vector<Dimension>& dimensions() const noexcept { return dimensions_; }

  /// All dimensions flattened: a choice stands before the axes of its branches.
  [[nodiscard]] const std::vector<Axis>& axes() const noexcept { return axes_; }

  /// True when there is nothing to choose.
  [[nodiscard]] bool empty() const noexcept { return axes_.empty(); }

  /// The number of different configurations; nothing when it is infinite or above 2^53.
  [[nodiscard]] std::optional<std::uint64_t> size() const noexcept { return size_; }

  /// The configuration at one position per axis; positions of axes that turn out inactive are ignored.
  ///
  /// @param positions  in [0, 1], as many as there are axes
  /// @param into       receives the values
  void point_at(std::span<const double> positions, Point& into) const;

  /// The values of configuration number `index`, below `size()`. Only for a space that has a size.
  [[nodiscard]] Point configuration(std::uint64_t index) const;

  /// The inverse of `configuration`: a number below `size()` for a point of this space.
  [[nodiscard]] std::uint64_t index_of(const Point& point) const;

  /// What the trial is given for a point: one value per axis, NaN where an axis is not active.
  [[nodiscard]] Parameters to_parameters(const Point& point) const;

  /// The inverse of `to_parameters`; nothing when the parameters do not fit this space.
  [[nodiscard]] std::optional<Point> to_point(const Parameters& parameters) const;

  /// True when both have the same dimensions in the same order.
  friend bool operator==(const SearchSpace& a, const SearchSpace& b) { return a.to_json() == b.to_json(); }

 private:
  std::vector<Dimension> dimensions_;
  std::vector<Axis> axes_;
  std::optional<std::uint64_t> size_ = 1;
};

}  // namespace nni

#if NNI_HEADER_ONLY
#include <nni/space/search_space_inl.hpp>
#endif
