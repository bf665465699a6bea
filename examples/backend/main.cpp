// A program with a backend of its own: the same expressions on its device and on the CPU.
#include <iostream>

#include "tenon/tenon.h"
#include "walk.h"

using namespace tenon;

int main() {
  Config config;
  config.ledger = false;
  DeviceManager manager(config);
  manager.add_backend(make_walk_backend());
  const UseManager use(manager);

  const Tensor x = tensor({{1.0, 2.0, 3.0}, {1.0, 1.0, 1.0}});
  const Tensor y = softmax(x);
  std::cout << "on walk:0 " << y.on("walk:0") << '\n';
  std::cout << "on cpu:0  " << y.on("cpu:0") << '\n';

  try {
    std::cout << sort(x).on("walk:0") << '\n';
  } catch (const Error& error) {
    std::cout << error.what() << '\n';
  }
}
