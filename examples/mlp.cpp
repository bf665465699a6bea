// Trains a multilayer perceptron on the exclusive or. A training step, with hand-written gradients, is one program, compiled
// once.
#include <iostream>

#include "tenon/tenon.h"

using namespace tenon;

int main() {
  const Tensor x = tensor({{0.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}, {1.0, 1.0}});
  const Tensor target = tensor({{0.0}, {1.0}, {1.0}, {0.0}});
  Tensor w1 = randn({2, 8}, DType::f32, 1), b1 = zeros({8});
  Tensor w2 = randn({8, 1}, DType::f32, 2), b2 = zeros({1});
  Tensor loss, output;

  const float rate = 0.5F;
  for (int step = 0; step <= 400; ++step) {
    const Tensor hidden = tanh(matmul(x, w1) + b1);
    output = sigmoid(matmul(hidden, w2) + b2);
    loss = binary_cross_entropy(output, target);

    const Tensor d_output = (output - target) / 4;
    const Tensor d_hidden = matmul(d_output, w2.T()) * (1 - square(hidden));
    w2 -= rate * matmul(hidden.T(), d_output);
    b2 -= rate * sum(d_output, 0);
    w1 -= rate * matmul(x.T(), d_hidden);
    b1 -= rate * sum(d_hidden, 0);
    eval(w1, b1, w2, b2, loss, output);

    if (step % 200 == 0)
      std::cout << "step " << step << ": the loss is " << (loss.item<float>() < 0.1F ? "small" : "large") << '\n';
  }
  std::cout << "0^0, 0^1, 1^0, 1^1: " << round(output).reshape({4}).cast(DType::i64) << '\n';
}
