#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "data.hpp"

namespace digits {

/// Activation function of hidden units.
enum class Activation { relu, tanh, sigmoid };

/// Parses `relu`, `tanh` or `sigmoid`; nothing for another name.
[[nodiscard]] std::optional<Activation> parse_activation(std::string_view name);

/// Settings of a training; the first five are tuned.
struct Settings {
  double learning_rate = 1e-3;               ///< of Adam, at the start
  std::size_t hidden_units = 64;             ///< in each of the two hidden layers
  std::size_t batch_size = 32;               ///< images per step
  Activation activation = Activation::relu;  ///< of the hidden layers
  double weight_decay = 1e-4;                ///< fraction of a weight that a step removes, times the learning rate
  std::size_t epochs = 60;                   ///< number of passes over the images
  std::uint32_t seed = 1;                    ///< seed of the initial weights and the order of images
};

/// A fully connected layer with the state of Adam.
///
/// Weights lie input by input, so that the loops over outputs run over adjacent numbers and the compiler can
/// vectorize without reordering sums: equal settings give equal results.
struct Layer {
  Layer(std::size_t inputs, std::size_t outputs, std::mt19937& random);

  std::size_t inputs;
  std::size_t outputs;
  /// The weights, followed by one bias per output.
  std::vector<float> parameters;
  std::vector<float> gradient;
  std::vector<float> mean;      ///< Adam's running mean of the gradient
  std::vector<float> variance;  ///< Adam's running mean of its square
};

/// A multilayer perceptron that classifies digits, trained with Adam.
///
/// Two hidden layers, softmax and cross entropy at the end; decoupled weight decay; the learning rate falls to zero
/// along half a cosine. Each epoch shows every image once, moved by up to half a pixel, because 1,000 images are few.
///
/// Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015; Loshchilov and Hutter, Decoupled Weight
/// Decay Regularization, 2019.
class Mlp {
 public:
  explicit Mlp(const Settings& settings);

  /// Goes once through the images, in random order.
  void train_epoch(const Images& images);

  /// Share of the images whose digit the network names, 0 to 1.
  [[nodiscard]] double accuracy(const Images& images) const;

 private:
  using Buffer = std::vector<float>;

  void step(const Buffer& batch, const std::vector<std::size_t>& labels, double progress);
  /// Fills `outputs[k]` with what layer k makes of the batch.
  void forward(const float* batch, std::size_t count, std::vector<Buffer>& outputs) const;
  void adam(Layer& layer, double learning_rate) const;

  Settings settings_;
  std::mt19937 random_;
  std::vector<Layer> layers_;
  std::vector<Buffer> outputs_;
  std::vector<Buffer> errors_;
  std::size_t epoch_ = 0;
  long steps_ = 0;
};

}  // namespace digits
