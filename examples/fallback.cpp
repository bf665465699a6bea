// Falls back to the CPU when a device fails. The expression stays the same; only the device request changes.
#include <iostream>
#include <string>
#include <vector>

#include "tenon/tenon.h"

using namespace tenon;

// The value of |y|, computed on the first of |devices| that succeeds.
HostArray on_first_of(const std::vector<std::string>& devices, const Tensor& y) {
  for (const std::string& device : devices) {
    try {
      HostArray value = y.on(device).to_host();
      std::cout << "computed on " << device << '\n';
      return value;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::not_found) throw;
      std::cout << device << ": " << error.what() << '\n';
    }
  }
  throw Error(ErrorCode::unavailable, "no device could compute it");
}

int main() {
  Config config;
  config.simulated.push_back(parse_simulated("gpu,open=0,open_fails=1"));
  config.ledger = false;
  DeviceManager manager(config);
  const UseManager use(manager);

  const Tensor y = cumsum(square(arange(6)));
  std::cout << Tensor(on_first_of({"sim:0", "cpu"}, y)) << '\n';
}
