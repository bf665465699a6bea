// Builds an expression and prints its value.
#include <iostream>

#include "tenon/tenon.h"

using namespace tenon;

int main() {
  const Tensor a = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor y = relu(matmul(a, a.T()) / 2 - 3);  // nothing is computed yet

  std::cout << "y is " << name(y.dtype()) << ' ' << to_string(y.shape()) << '\n';
  std::cout << y << '\n';  // now it is, as one program on the best available device
  std::cout << "its last row is " << y[-1] << '\n';
  std::cout << "its mean is " << mean(y).item<float>() << '\n';
}
