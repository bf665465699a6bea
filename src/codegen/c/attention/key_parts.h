// The keys of a head, divided between work-groups: for each row, a part stores its sum of values [lines, parts, width] and its
// state [lines, parts, 2], the score that counts as one and the sum of the weights; a second kernel joins them.
#pragma once

#include "codegen/c/attention/attention.h"

namespace tenon::emit {

struct KeyParts {
  std::int64_t count = 1, keys = 0;  // how many parts, and the keys of each but the last
  int sums = -1, states = -1;        // numbers of the buffers, if there are several parts
};

// The parts that take the fewest rounds of the |held| work-groups that the device runs at once for their number: at most |limit|,
// of a multiple of |step| keys. |all|: work-groups if there were one part.
KeyParts divided_keys(std::int64_t keys, std::int64_t all, std::int64_t held, std::int64_t limit, std::int64_t step);
void reserve_results(KeyParts& parts, std::int64_t lines, std::int64_t width, const Scratch& scratch);

// Adds STORE and STORE_STATE: what a part does with x, column c of row |line|, of which |top| counts as one and |all| is the sum.
// C++'s |t| is the number of the work-item; the text defines WIDTH.
void add_result(std::map<std::string, std::string>& names, Body& body, const KeyParts& parts, const Dense& out);
Launch emit_joined_parts(const KernelTarget& target, const KeyParts& parts, std::int64_t lines, std::int64_t width,
                         const Dense& out);

}  // namespace tenon::emit
