// Everything at once: what a user of tensors includes, and the names that may not clash with the user's own.
#include <cstdio>

#include "tenon/tenon.h"

using namespace tenon;

namespace {

// Names of the user's own, beside all of Tenon's.
int rows(int count) { return count; }
const char* label() { return "sum"; }
int summarize(int value) { return value; }

}  // namespace

int main() {
  const Tensor x = arange(6).reshape({2, 3});
  std::printf("%s %d\n", label(), summarize(sum(x * 2).item<int>() + rows(0)));
}
