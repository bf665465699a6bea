// Runs several programs in one lease: the device is opened once and stays with this program until the lease ends.
#include <iostream>

#include "tenon/tenon.h"

using namespace tenon;

int main() {
  Config config;
  config.simulated.push_back(parse_simulated("wormhole,open=20ms,close=20ms"));
  config.ledger = false;
  DeviceManager manager(config);
  const UseManager use(manager);

  const Tensor weight = arange(12).reshape({3, 4}).cast(DType::f32);
  const Lease lease = manager.lease({.device = "sim:0", .timeout = std::chrono::seconds(30)});
  for (int batch = 0; batch < 4; ++batch) {
    const Tensor x = full({2, 3}, batch);
    const Tensor y = sum(matmul(x, weight)).on(lease.device().id);
    std::cout << "batch " << batch << ": " << y.item<float>() << '\n';
  }
  for (const DeviceStatus& status : manager.status())
    if (status.device.id == "sim:0") std::cout << status.device.name << " was opened " << status.counters.opens << " time\n";
}
