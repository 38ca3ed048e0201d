#include "mlp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace digits {
namespace {

// The numbers that Kingma and Ba recommend.
constexpr float mean_decay = 0.9F;
constexpr float variance_decay = 0.999F;
constexpr float tiny = 1e-8F;

/// How far an image is moved at most, in pixels. More than this loses strokes at the border of an 8 x 8 image.
constexpr float reach = 0.5F;

/// A number in [low, high) from 24 random bits; the distributions of the standard library differ between platforms.
float uniform(std::mt19937& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random() >> 8) / 16777216.0F;
}

/// Copies an image, moved by fractions of a pixel; what comes in from outside is empty.
void copy_moved(const float* image, float down, float right, float* to) {
  constexpr int side = 8;
  const auto at = [image](int row, int column) {
    return row >= 0 && row < side && column >= 0 && column < side ? image[row * side + column] : 0.0F;
  };
  const int rows = static_cast<int>(std::floor(down));
  const int columns = static_cast<int>(std::floor(right));
  const float v = down - static_cast<float>(rows);
  const float h = right - static_cast<float>(columns);
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column) {
      const int r = row - rows;
      const int c = column - columns;
      to[row * side + column] =
          (1 - v) * ((1 - h) * at(r, c) + h * at(r, c - 1)) +  //
          v * ((1 - h) * at(r - 1, c) + h * at(r - 1, c - 1));
    }
}

/// outputs = inputs * weights + bias, for `count` rows.
void multiply(const Layer& layer, const float* inputs, std::size_t count, float* outputs) {
  const std::size_t width = layer.outputs;
  const float* bias = layer.parameters.data() + layer.inputs * width;
  for (std::size_t row = 0; row < count; ++row) {
    float* out = outputs + row * width;
    std::copy(bias, bias + width, out);
    const float* in = inputs + row * layer.inputs;
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const float factor = in[i];
      if (factor == 0.0F) continue;  // a third of the pixels, and half of what a ReLU passes on
      const float* weights = layer.parameters.data() + i * width;
      for (std::size_t k = 0; k < width; ++k) out[k] += factor * weights[k];
    }
  }
}

/// Sets the layer's gradient from its inputs and the errors of its outputs.
void accumulate_gradient(Layer& layer, const float* inputs, const float* errors, std::size_t count) {
  const std::size_t width = layer.outputs;
  std::fill(layer.gradient.begin(), layer.gradient.end(), 0.0F);
  float* bias = layer.gradient.data() + layer.inputs * width;
  for (std::size_t row = 0; row < count; ++row) {
    const float* error = errors + row * width;
    for (std::size_t k = 0; k < width; ++k) bias[k] += error[k];
    const float* in = inputs + row * layer.inputs;
    for (std::size_t i = 0; i < layer.inputs; ++i) {
      const float factor = in[i];
      if (factor == 0.0F) continue;
      float* gradient = layer.gradient.data() + i * width;
      for (std::size_t k = 0; k < width; ++k) gradient[k] += factor * error[k];
    }
  }
}

/// Errors of a layer's inputs from the errors of its outputs, through the transposed weights.
void propagate_back(const Layer& layer, const float* errors, std::size_t count, std::vector<float>& to) {
  std::vector<float> transposed(layer.inputs * layer.outputs);
  for (std::size_t i = 0; i < layer.inputs; ++i)
    for (std::size_t k = 0; k < layer.outputs; ++k)
      transposed[k * layer.inputs + i] = layer.parameters[i * layer.outputs + k];
  to.assign(count * layer.inputs, 0.0F);
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t k = 0; k < layer.outputs; ++k) {
      const float factor = errors[row * layer.outputs + k];
      const float* weights = transposed.data() + k * layer.inputs;
      float* out = to.data() + row * layer.inputs;
      for (std::size_t i = 0; i < layer.inputs; ++i) out[i] += factor * weights[i];
    }
}

void activate(Activation kind, std::vector<float>& values) {
  switch (kind) {
    case Activation::relu:
      for (float& value : values) value = std::max(value, 0.0F);
      break;
    case Activation::tanh:
      for (float& value : values) value = std::tanh(value);
      break;
    case Activation::sigmoid:
      for (float& value : values) value = 1.0F / (1.0F + std::exp(-value));
      break;
  }
}

/// Multiplies errors with the slope of the activation, which each kind can tell from its own result.
void multiply_slope(Activation kind, const std::vector<float>& results, std::vector<float>& errors) {
  const std::size_t count = errors.size();
  switch (kind) {
    case Activation::relu:
      for (std::size_t i = 0; i < count; ++i) errors[i] = results[i] > 0.0F ? errors[i] : 0.0F;
      break;
    case Activation::tanh:
      for (std::size_t i = 0; i < count; ++i) errors[i] *= 1.0F - results[i] * results[i];
      break;
    case Activation::sigmoid:
      for (std::size_t i = 0; i < count; ++i) errors[i] *= results[i] * (1.0F - results[i]);
      break;
  }
}

/// Turns the scores of one image into probabilities.
void softmax(float* scores) {
  const float top = *std::max_element(scores, scores + classes);
  float sum = 0.0F;
  for (std::size_t k = 0; k < classes; ++k) sum += scores[k] = std::exp(scores[k] - top);
  for (std::size_t k = 0; k < classes; ++k) scores[k] /= sum;
}

}  // namespace

std::optional<Activation> parse_activation(std::string_view name) {
  if (name == "relu") return Activation::relu;
  if (name == "tanh") return Activation::tanh;
  if (name == "sigmoid") return Activation::sigmoid;
  return std::nullopt;
}

Layer::Layer(std::size_t input_count, std::size_t output_count, std::mt19937& random)
    : inputs(input_count),
      outputs(output_count),
      parameters((input_count + 1) * output_count, 0.0F),
      gradient(parameters.size(), 0.0F),
      mean(parameters.size(), 0.0F),
      variance(parameters.size(), 0.0F) {
  // Glorot and Bengio: keeps the size of signals in both directions. Biases start at zero.
  const float limit = std::sqrt(6.0F / static_cast<float>(inputs + outputs));
  for (std::size_t i = 0; i < inputs * outputs; ++i) parameters[i] = uniform(random, -limit, limit);
}

Mlp::Mlp(const Settings& settings) : settings_(settings), random_(settings.seed) {
  const std::array widths{pixels, settings.hidden_units, settings.hidden_units, classes};
  for (std::size_t k = 0; k + 1 < widths.size(); ++k) layers_.emplace_back(widths[k], widths[k + 1], random_);
}

void Mlp::train_epoch(const Images& images) {
  std::vector<std::size_t> order(images.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);

  Buffer batch;
  std::vector<std::size_t> labels;
  for (std::size_t begin = 0; begin < order.size(); begin += settings_.batch_size) {
    const std::size_t count = std::min(settings_.batch_size, order.size() - begin);
    batch.resize(count * pixels);
    labels.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const float down = uniform(random_, -reach, reach);
      const float right = uniform(random_, -reach, reach);
      copy_moved(images.image(order[begin + i]), down, right, batch.data() + i * pixels);
      labels[i] = images.labels[order[begin + i]];
    }
    const double epochs_done =
        static_cast<double>(epoch_) + static_cast<double>(begin) / static_cast<double>(order.size());
    step(batch, labels, epochs_done / static_cast<double>(settings_.epochs));
  }
  ++epoch_;
}

void Mlp::step(const Buffer& batch, const std::vector<std::size_t>& labels, double progress) {
  const std::size_t count = labels.size();
  forward(batch.data(), count, outputs_);

  // For softmax with cross entropy the error of a score is its probability, less one at the right digit.
  Buffer errors = outputs_.back();
  for (std::size_t row = 0; row < count; ++row) {
    softmax(errors.data() + row * classes);
    errors[row * classes + labels[row]] -= 1.0F;
  }
  for (float& error : errors) error /= static_cast<float>(count);

  Buffer below;
  for (std::size_t k = layers_.size(); k-- > 0;) {
    const float* inputs = k == 0 ? batch.data() : outputs_[k - 1].data();
    accumulate_gradient(layers_[k], inputs, errors.data(), count);
    if (k == 0) break;
    propagate_back(layers_[k], errors.data(), count, below);
    multiply_slope(settings_.activation, outputs_[k - 1], below);
    errors.swap(below);
  }

  ++steps_;
  const double rate = settings_.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(progress, 1.0)));
  for (Layer& layer : layers_) adam(layer, rate);
}

void Mlp::forward(const float* batch, std::size_t count, std::vector<Buffer>& outputs) const {
  outputs.resize(layers_.size());
  const float* inputs = batch;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    outputs[k].resize(count * layers_[k].outputs);
    multiply(layers_[k], inputs, count, outputs[k].data());
    if (k + 1 < layers_.size()) activate(settings_.activation, outputs[k]);
    inputs = outputs[k].data();
  }
}

void Mlp::adam(Layer& layer, double learning_rate) const {
  const double steps = static_cast<double>(steps_);
  const float mean_scale = static_cast<float>(1.0 / (1.0 - std::pow(double{mean_decay}, steps)));
  const float variance_scale = static_cast<float>(1.0 / (1.0 - std::pow(double{variance_decay}, steps)));
  const float rate = static_cast<float>(learning_rate);
  const float keep = static_cast<float>(1.0 - learning_rate * settings_.weight_decay);
  const std::size_t weights = layer.inputs * layer.outputs;
  float* __restrict__ parameters = layer.parameters.data();
  float* __restrict__ mean = layer.mean.data();
  float* __restrict__ variance = layer.variance.data();
  const float* __restrict__ gradient = layer.gradient.data();
  for (std::size_t i = 0; i < weights; ++i) parameters[i] *= keep;  // biases do not decay
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    mean[i] = mean_decay * mean[i] + (1 - mean_decay) * gradient[i];
    variance[i] = variance_decay * variance[i] + (1 - variance_decay) * gradient[i] * gradient[i];
    parameters[i] -= rate * (mean[i] * mean_scale) / (std::sqrt(variance[i] * variance_scale) + tiny);
  }
}

double Mlp::accuracy(const Images& images) const {
  std::vector<Buffer> outputs;
  forward(images.values.data(), images.size(), outputs);
  std::size_t right = 0;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const float* scores = outputs.back().data() + i * classes;
    if (static_cast<std::size_t>(std::max_element(scores, scores + classes) - scores) == images.labels[i]) ++right;
  }
  return static_cast<double>(right) / static_cast<double>(images.size());
}

}  // namespace digits
