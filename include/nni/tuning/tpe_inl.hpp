#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <nni/core/error.hpp>
#include <nni/tuning/tpe.hpp>

namespace nni::tuning {

NNI_LAZY_BODY Tpe::Tpe(SearchSpace space, TpeOptions options, Seed seed)
    : model_(std::make_unique<Model>(std::move(space))), options_(options), seed_(seed) {
  ProblemList problems;
  const auto at_least_one = [&problems](const char* key, int value) {
    if (value < 1) problems.add(key, "is " + std::to_string(value) + ", but must be at least 1");
  };
  at_least_one("tpe.startup_trials", options.startup_trials);
  at_least_one("tpe.candidates", options.candidates);
  at_least_one("tpe.good_at_most", options.good_at_most);
  if (!(options.good_share > 0.0 && options.good_share < 1.0))
    problems.add("tpe.good_share", "is " + to_json_text(options.good_share) + ", but must lie between 0 and 1");
  if (!(options.prior_weight > 0.0 && std::isfinite(options.prior_weight)))
    problems.add("tpe.prior_weight", "is " + to_json_text(options.prior_weight) + ", but must be greater than 0");
  problems.throw_if_any();
}

NNI_LAZY_BODY void Tpe::start(const SearchSpace& space, const Objectives& goals) {
  goals_ = goals;
  update_search_space(space);
}

NNI_LAZY_BODY void Tpe::update_search_space(const SearchSpace& space) {
  auto model = std::make_unique<Model>(space);
  std::vector<Trial> trials = take_all();
  model_ = std::move(model);
  // In the order of recording: the next suggestion must not depend on the spaces in between.
  std::sort(trials.begin(), trials.end(), [](const Trial& one, const Trial& other) { return one.turn < other.turn; });
  for (Trial& trial : trials) take_up(std::move(trial));
}

// Returns every trial as it was suggested; empties `aside_`.
NNI_LAZY_BODY std::vector<Tpe::Trial> Tpe::take_all() {
  const Model& model = *model_;
  running_aside_.clear();
  std::vector<Trial> trials = std::exchange(aside_, {});
  const std::size_t first = trials.size();
  const std::size_t axes = model.space.axes().size();
  Point point(axes);
  for (std::size_t index = 0; index < model.records.size(); ++index) {
    const Record& known = model.records[index];
    std::copy_n(model.values.begin() + static_cast<std::ptrdiff_t>(index * axes), axes, point.begin());
    trials.push_back(Trial{imported_parameter, known.text ? *known.text : model.space.to_parameters(point), known.loss,
                           known.turn, known.state});
  }
  // A record does not hold its id; running trials need theirs to be found again.
  for (const auto& [id, index] : model.running) trials[first + index].id.value = id;
  return trials;
}

// Adds a trial to the current model, or to those aside if it does not fit the space.
NNI_LAZY_BODY void Tpe::take_up(Trial trial) {
  const std::optional<Point> point = model_->space.to_point(trial.parameters);
  if (!point) return put_aside(std::move(trial));
  const std::uint32_t index = record(*point, trial.parameters);
  model_->records[index].turn = trial.turn;
  if (trial.state != State::running)
    settle(index, trial.state, trial.loss);
  else if (trial.id != imported_parameter)
    model_->running.emplace(trial.id.value, index);
}

NNI_LAZY_BODY void Tpe::put_aside(Trial trial) {
  if (trial.state == State::running && trial.id != imported_parameter)
    running_aside_.insert_or_assign(trial.id.value, aside_.size());
  aside_.push_back(std::move(trial));
}

NNI_LAZY_BODY std::optional<Parameters> Tpe::generate(ParameterId id) {
  Point point;
  if (!suggest(id, point)) return std::nullopt;
  return model_->space.to_parameters(point);
}

NNI_LAZY_BODY bool Tpe::suggest(ParameterId id, Point& into) {
  Model& model = *model_;
  if (model.unvisited.exhausted()) return false;
  const bool known = model.order.size() >= static_cast<std::size_t>(options_.startup_trials);
  if (!known || !draw_by_model(id, into)) draw_at_random(id, into);
  model.running.insert_or_assign(id.value, record(into));
  return true;
}

NNI_LAZY_BODY void Tpe::draw_at_random(ParameterId id, Point& into) {
  Model& model = *model_;
  std::vector<double> positions(model.space.axes().size());
  // A countable space has the fallback below, so fewer draws are enough.
  const bool countable = model.unvisited.active();
  for (std::uint32_t attempt = 0; attempt < (countable ? 16U : 64U); ++attempt) {
    CounterRandom random(seed_, id, attempt);
    for (double& position : positions) position = random.uniform();
    model.space.point_at(positions, into);
    if (!was_tried(into)) return;
  }
  // All likely points were tried, in a space that may be infinite: accepts a repetition.
  if (!countable) return;
  into = model.space.configuration(model.unvisited.next(model.space.index_of(into)));
}

NNI_LAZY_BODY bool Tpe::was_tried(const Point& point) const {
  const Model& model = *model_;
  if (model.unvisited.active()) return model.unvisited.visited(model.space.index_of(point));
  return model.tried.contains(detail::hash_of(point));
}

// Returns false if every candidate was suggested before.
NNI_LAZY_BODY bool Tpe::draw_by_model(ParameterId id, Point& into) {
  Model& model = *model_;
  split();
  const std::vector<Axis>& axes = model.space.axes();
  // These streams are above those of the random draws.
  CounterRandom random(seed_, id, 1U << 16);
  std::vector<float> candidate(axes.size());
  std::vector<double> positions(axes.size());
  double best = -std::numeric_limits<double>::infinity();
  Point point;
  for (int count = 0; count < options_.candidates; ++count) {
    model.good.draw(random, options_.prior_weight, candidate);
    const double ratio =
        model.good.log_density(candidate, options_.prior_weight) -
        model.bad.log_density(candidate, options_.prior_weight);
    if (!(ratio > best)) continue;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const double at = static_cast<double>(candidate[axis]);
      if (axes[axis].type == DimensionType::choice)
        positions[axis] = (at + 0.5) / static_cast<double>(axes[axis].count);
      else
        positions[axis] = is_normal(axes[axis].type) ? normal_cdf(at) : at;
    }
    model.space.point_at(positions, point);
    if (was_tried(point)) continue;
    best = ratio;
    into = point;
  }
  return std::isfinite(best);
}

NNI_LAZY_BODY void Tpe::observe(const TrialOutcome& outcome) {
  State state = State::failed;
  if (outcome.status == TrialJobStatus::user_canceled || outcome.status == TrialJobStatus::sys_canceled)
    state = State::gone;
  const bool useful = outcome.status == TrialJobStatus::succeeded || outcome.status == TrialJobStatus::early_stopped;
  if (useful && outcome.value && std::isfinite(*outcome.value)) state = State::finished;
  const double loss = goals_.loss(outcome.value.value_or(0.0));
  const std::optional<Point> point = model_->space.to_point(outcome.parameters);
  std::optional<std::uint32_t> index = land(outcome.parameter, point ? &*point : nullptr);
  if (!index && !point) return conclude_aside(outcome.parameter, outcome.parameters, state, loss);
  if (!index) index = record(*point, outcome.parameters);
  settle(*index, state, loss);
}

NNI_LAZY_BODY void Tpe::conclude_aside(ParameterId id, const Parameters& parameters, State state, double loss) {
  if (const auto found = running_aside_.find(id.value); found != running_aside_.end()) {
    Trial& known = aside_[found->second];
    known = Trial{imported_parameter, parameters, loss, known.turn, state};
    running_aside_.erase(found);
    return;
  }
  put_aside(Trial{imported_parameter, parameters, loss, turn_++, state});
}

NNI_LAZY_BODY void Tpe::adopt(ParameterId id, const Parameters& parameters) {
  if (const std::optional<Point> point = model_->space.to_point(parameters))
    model_->running.insert_or_assign(id.value, record(*point, parameters));
  else
    put_aside(Trial{id, parameters, 0.0, turn_++, State::running});
}

NNI_LAZY_BODY void Tpe::learn(ParameterId id, const Point& point, std::optional<double> value) {
  std::optional<std::uint32_t> index = land(id, &point);
  if (!index) index = record(point);
  const bool useful = value && std::isfinite(*value);
  settle(*index, useful ? State::finished : State::failed, useful ? goals_.loss(*value) : 0.0);
}

// Removes a trial from the running ones and returns its record. Its actual parameters count, even if this object does not
// know the trial or would have suggested others: both happen after a resume.
NNI_LAZY_BODY std::optional<std::uint32_t> Tpe::land(ParameterId id, const Point* point) {
  Model& model = *model_;
  if (const auto aside = running_aside_.find(id.value); point && aside != running_aside_.end()) {
    aside_[aside->second].state = State::gone;
    running_aside_.erase(aside);
  }
  const auto found = model.running.find(id.value);
  if (found == model.running.end()) return std::nullopt;
  const std::uint32_t index = found->second;
  model.running.erase(found);
  if (!point || is_at(index, *point)) return index;
  settle(index, State::gone, 0.0);
  return std::nullopt;
}

NNI_LAZY_BODY std::vector<float> Tpe::coordinates_of(const Point& point) const {
  const std::vector<Axis>& axes = model_->space.axes();
  std::vector<float> coordinates(axes.size(), static_cast<float>(inactive));
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    if (std::isnan(point[axis])) continue;
    if (axes[axis].type == DimensionType::choice) {
      coordinates[axis] = static_cast<float>(point[axis]);
      continue;
    }
    // Snapped to a lattice: a value that lost digits in a text must get the same kernel.
    if (is_normal(axes[axis].type)) {
      const double deviations = detail::deviations_of(axes[axis], point[axis]);
      coordinates[axis] = static_cast<float>(std::nearbyint(deviations * 0x1p18) * 0x1p-18);
      continue;
    }
    const double position = std::nearbyint(axes[axis].position_of(point[axis]) * 0x1p20) * 0x1p-20;
    coordinates[axis] = static_cast<float>(std::clamp(position, 0x1p-20, 1.0 - 0x1p-20));
  }
  return coordinates;
}

NNI_LAZY_BODY bool Tpe::is_at(std::uint32_t index, const Point& point) const {
  const std::vector<float> coordinates = coordinates_of(point);
  for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
    const float known = model_->bad.coordinate(index, axis);
    if (known != coordinates[axis] && !(std::isnan(known) && std::isnan(coordinates[axis]))) return false;
  }
  return true;
}

NNI_LAZY_BODY std::uint32_t Tpe::record(const Point& point) {
  Model& model = *model_;
  if (model.unvisited.active())
    model.unvisited.visit(model.space.index_of(point));
  else if (!model.space.empty())
    model.tried.insert(detail::hash_of(point));
  model.bad.add(coordinates_of(point), weight_of(State::running));
  model.values.insert(model.values.end(), point.begin(), point.end());
  model.records.emplace_back().turn = turn_++;
  return static_cast<std::uint32_t>(model.records.size() - 1);
}

NNI_LAZY_BODY std::uint32_t Tpe::record(const Point& point, const Parameters& parameters) {
  const std::uint32_t index = record(point);
  // Parameters beyond the dimensions of this space may fit another space.
  if (model_->space.to_parameters(point) != parameters)
    model_->records[index].text = std::make_unique<const Parameters>(parameters);
  return index;
}

NNI_LAZY_BODY void Tpe::settle(std::uint32_t index, State state, double loss) {
  Model& model = *model_;
  Record& own = model.records[index];
  own.state = state;
  own.loss = loss;
  if (!own.good) model.bad.set_weight(index, weight_of(state));
  if (state != State::finished) return;
  model.order.push_back(index);
}

// Results are sorted lazily, so a long history that is replayed at once is sorted once.
NNI_LAZY_BODY void Tpe::sort_records() {
  Model& model = *model_;
  const auto better = [this](std::uint32_t one, std::uint32_t other) { return before(one, other); };
  const auto begin = model.order.begin();
  const auto middle = begin + static_cast<std::ptrdiff_t>(model.sorted);
  if (model.order.end() - middle > 16) {
    std::sort(begin, model.order.end(), better);
  } else {
    for (auto next = middle; next != model.order.end(); ++next)
      std::rotate(std::upper_bound(begin, next, *next, better), next, next + 1);
  }
  model.sorted = model.order.size();
}

// Equal results are ordered by suggestion: the next suggestion must not depend on the order of completion.
NNI_INLINE bool Tpe::before(std::uint32_t one, std::uint32_t other) const {
  const double here = model_->records[one].loss;
  const double there = model_->records[other].loss;
  return here < there || (here == there && one < other);
}

// Selects the good records and fits both mixtures.
NNI_LAZY_BODY void Tpe::split() {
  Model& model = *model_;
  sort_records();
  const std::vector<std::uint32_t> good = best_records();
  for (const std::uint32_t index : model.above) {
    model.records[index].good = false;
    model.bad.set_weight(index, weight_of(model.records[index].state));
  }
  std::vector<float> point(model.space.axes().size());
  model.good.clear();
  for (const std::uint32_t index : good) {
    model.records[index].good = true;
    model.bad.set_weight(index, 0.0F);
    for (std::size_t axis = 0; axis < point.size(); ++axis) point[axis] = model.bad.coordinate(index, axis);
    model.good.add(point, 1.0F);
  }
  model.above = good;
  model.good.fit();
  model.bad.fit();
}

// The good part: the best results, and running trials at the rank of their assumed result.
NNI_LAZY_BODY std::vector<std::uint32_t> Tpe::best_records() const {
  const Model& model = *model_;
  std::vector<std::uint32_t> ranked = model.order;
  const bool lying = options_.liar == Liar::mean || options_.liar == Liar::best;
  if (lying && !model.running.empty()) {
    double lie = model.records[model.order.front()].loss;
    if (options_.liar == Liar::mean) {
      double sum = 0.0;
      for (const std::uint32_t index : model.order) sum += model.records[index].loss;
      lie = sum / static_cast<double>(model.order.size());
    }
    std::vector<std::uint32_t> running;
    running.reserve(model.running.size());
    for (const auto& [id, index] : model.running) running.push_back(index);
    std::sort(running.begin(), running.end());
    ranked.insert(place_of(lie, std::numeric_limits<std::uint32_t>::max(), ranked), running.begin(), running.end());
  }
  const auto share = static_cast<std::size_t>(std::ceil(options_.good_share * static_cast<double>(ranked.size())));
  ranked.resize(std::min({share, static_cast<std::size_t>(options_.good_at_most), ranked.size()}));
  return ranked;
}

NNI_LAZY_BODY std::vector<std::uint32_t>::iterator Tpe::place_of(
    double loss, std::uint32_t index, std::vector<std::uint32_t>& ranked) const {
  return std::upper_bound(ranked.begin(), ranked.end(), loss, [this, index](double value, std::uint32_t other) {
    const double there = model_->records[other].loss;
    return value < there || (value == there && index < other);
  });
}

NNI_INLINE float Tpe::weight_of(State state) const noexcept {
  if (state == State::running) return options_.liar == Liar::none ? 0.0F : 1.0F;
  return state == State::gone ? 0.0F : 1.0F;
}

}  // namespace nni::tuning
