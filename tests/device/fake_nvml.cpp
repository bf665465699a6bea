// NVML's C interface, answering for one card that does not exist. fake_nvml_set changes what it answers.
#include <cstring>

namespace {

int start_result = 0;
int compute_mode = 0;
int started = 0;

int put(char* text, unsigned size, const char* value) {
  if (std::strlen(value) >= size) return 7;  // insufficient size
  std::strcpy(text, value);
  return 0;
}

}  // namespace

extern "C" {

void fake_nvml_set(int result_of_start, int mode) {
  start_result = result_of_start;
  compute_mode = mode;
}
int fake_nvml_started() { return started; }

int nvmlInit_v2() {
  if (start_result == 0) ++started;
  return start_result;
}
int nvmlShutdown() {
  --started;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return put(text, size, "580.159.04"); }
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = 13020;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  *handle = &started;
  return index == 0 ? 0 : 15;  // the second card has fallen off the bus
}
int nvmlDeviceGetName(void*, char* text, unsigned size) { return put(text, size, "NVIDIA Stand-in"); }
int nvmlDeviceGetUUID(void*, char* text, unsigned size) { return put(text, size, "GPU-42"); }
int nvmlDeviceGetSerial(void*, char*, unsigned) { return 3; }  // not supported
struct Pci {
  char legacy[16];
  unsigned numbers[5];
  char address[32];
};
int nvmlDeviceGetPciInfo_v3(void*, Pci* pci) { return put(pci->address, sizeof pci->address, "00000000:AF:00.0"); }
struct Memory {
  unsigned long long total, free, used;
};
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {1000, 600, 400};
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 8;
  *minor = 9;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 71500;
  return 0;
}
int nvmlDeviceGetTemperature(void*, unsigned sensor, unsigned* celsius) {
  *celsius = sensor == 0 ? 44 : 0;
  return 0;
}
int nvmlDeviceGetComputeMode(void*, int* mode) {
  *mode = compute_mode;
  return 0;
}
struct Process {
  unsigned pid;
  unsigned long long memory;
  unsigned instance, compute_instance;
};
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  if (*count < 1) return 7;
  *count = 1;
  processes[0] = {999999999, 5, 0, 0};
  return 0;
}
}
