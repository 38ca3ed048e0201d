#pragma once

#include <nni/core/error.hpp>
#include <nni/tuning/grid.hpp>

namespace nni::tuning {

NNI_LAZY_BODY Grid::Grid(SearchSpace space) : space_(std::move(space)) { rewind(); }

NNI_LAZY_BODY void Grid::start(const SearchSpace& space, const Objectives&) { update_search_space(space); }

NNI_LAZY_BODY void Grid::update_search_space(const SearchSpace& space) {
  if (space.empty()) throw config_error("space", "has no dimensions; a grid needs at least one");
  skip_replayed();
  std::vector<Parameters> before = elsewhere_.take();
  before.reserve(before.size() + tried_.size());
  for (const std::string& text : tried_) before.emplace_back(text);
  if (next_ > first_) {
    rewind();
    for (std::uint64_t id = first_; id < next_ && advance(); ++id) before.push_back(space_.to_parameters(point()));
  }
  if (&space != &space_) space_ = space;
  tried_.clear();
  for (const Parameters& parameters : before) note(parameters);
  first_ = next_;
  rewind();
}

NNI_LAZY_BODY void Grid::note(const Parameters& parameters) {
  // In the spelling of this sequence, so that texts compare equal.
  if (const std::optional<Point> point = elsewhere_.note(space_, parameters))
    tried_.insert(space_.to_parameters(*point).text());
}

NNI_LAZY_BODY void Grid::observe(const TrialOutcome& outcome) {
  // This object's own suggestions are never repeated anyway.
  if (outcome.parameter.value >= next_) replay(outcome.parameter, outcome.parameters);
}

NNI_LAZY_BODY void Grid::adopt(ParameterId id, const Parameters& parameters) { replay(id, parameters); }

NNI_LAZY_BODY void Grid::replay(ParameterId id, const Parameters& parameters) {
  if (id != imported_parameter && id.value >= replayed_) replayed_ = id.value + 1;
  note(parameters);
}

// Continues after the last suggestion before a resume.
NNI_LAZY_BODY void Grid::skip_replayed() {
  if (replayed_ <= next_) return;
  first_ = next_ = replayed_;
  rewind();
}

NNI_LAZY_BODY std::optional<Parameters> Grid::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return space_.to_parameters(point);
}

NNI_LAZY_BODY bool Grid::suggest(ParameterId id, Point& into) {
  skip_replayed();
  // The sequence is at the last suggestion; an earlier one can only be reached from the start.
  if (id.value < first_) first_ = 0;
  if (id.value < next_ && (ended_ || id.value + 1 < next_)) {
    next_ = first_;
    rewind();
  }
  while (next_ <= id.value) {
    if (!advance()) return false;
    ++next_;
  }
  into = point();
  return true;
}

// Returns the current point of the sequence.
NNI_LAZY_BODY Point Grid::point() const {
  const std::vector<Axis>& axes = space_.axes();
  Point point(axes.size(), inactive);
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (!active(axis)) continue;
    const Line& line = lines_[axis];
    point[axis] = line.positions.empty() ? axes[axis].nth_value(line.at) : axes[axis].value_at(line.positions[line.at]);
  }
  return point;
}

NNI_LAZY_BODY bool Grid::was_tried() const {
  return !tried_.empty() && tried_.contains(space_.to_parameters(point()).text());
}

NNI_LAZY_BODY void Grid::rewind() {
  lines_.clear();
  for (const Axis& axis : space_.axes()) {
    Line line;
    if (axis.type == DimensionType::choice || axis.type == DimensionType::randint) {
      line.size = static_cast<std::size_t>(axis.count);
    } else {
      line.size = 1;
      line.positions = {0.5};
      const double middle = axis.value_at(0.5);
      if (axis.value_at(0.0) < middle) line.divisible.emplace_back(0.0, 0.5);
      if (middle < axis.value_at(1.0)) line.divisible.emplace_back(0.5, 1.0);
    }
    lines_.push_back(std::move(line));
  }
  fresh_ = true;
  ended_ = lines_.empty();
}

// Advances to the next point that no coarser grid contains.
NNI_LAZY_BODY bool Grid::advance() {
  while (!ended_) {
    if (fresh_) {
      fresh_ = false;
    } else if (!step()) {
      ended_ = !refine();
      continue;
    }
    if (is_new() && !was_tried()) return true;
  }
  return false;
}

// Advances to the next point of this grid; the last active axis varies fastest.
NNI_LAZY_BODY bool Grid::step() {
  for (std::size_t axis = lines_.size(); axis-- > 0;) {
    if (!active(axis)) continue;
    if (++lines_[axis].at < lines_[axis].size) return true;
    lines_[axis].at = 0;
  }
  return false;
}

// Refines the grid until it has new values, and restarts on it; returns false if there are none.
NNI_LAZY_BODY bool Grid::refine() {
  for (Line& line : lines_) line.known = line.size;
  bool refined = false;
  bool divisible = true;
  while (divisible && !refined) {
    divisible = false;
    for (std::size_t axis = 0; axis < lines_.size(); ++axis) {
      halve(axis);
      refined = refined || lines_[axis].size > lines_[axis].known;
      divisible = divisible || !lines_[axis].divisible.empty();
    }
  }
  fresh_ = true;
  return refined;
}

NNI_LAZY_BODY void Grid::halve(std::size_t index) {
  const Axis& axis = space_.axes()[index];
  Line& line = lines_[index];
  std::vector<std::pair<double, double>> divisible;
  for (const auto& [left, right] : line.divisible) {
    const double middle = 0.5 * (left + right);
    if (!(left < middle && middle < right)) continue;
    const double value = axis.value_at(middle);
    const bool differs_left = axis.value_at(left) < value;
    const bool differs_right = value < axis.value_at(right);
    // The limits are not in the grid, so next to them one difference is enough.
    if ((differs_left || left == 0.0) && (differs_right || right == 1.0)) line.positions.push_back(middle);
    if (differs_left) divisible.emplace_back(left, middle);
    if (differs_right) divisible.emplace_back(middle, right);
  }
  // Two adjacent values always differ, so an interval is divisible only while values between them are missing.
  if (axis.count != 0 && line.positions.size() == axis.count) divisible.clear();
  line.divisible = std::move(divisible);
  if (!line.positions.empty()) line.size = line.positions.size();
}

NNI_LAZY_BODY bool Grid::is_new() const {
  for (std::size_t axis = 0; axis < lines_.size(); ++axis)
    if (active(axis) && lines_[axis].at >= lines_[axis].known) return true;
  return false;
}

NNI_LAZY_BODY bool Grid::active(std::size_t axis) const {
  const Axis& self = space_.axes()[axis];
  if (self.parent == Axis::no_parent) return true;
  return active(self.parent) && lines_[self.parent].at == self.branch;
}

}  // namespace nni::tuning
