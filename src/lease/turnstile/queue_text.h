// Descriptions of positions in a device's queue.
#pragma once

#include <string>

#include "lease/turnstile/turnstile.h"

namespace tenon {

// "pid 4711 (anna, train.py --epochs 3)"; pids of another namespace are marked.
std::string who(const Turnstile::Position& place);
// The same for whoever may not know the command line, which can hold secrets: "pid 4711 (anna, python3 train.py)". Only the
// program and, after an interpreter, the script are named.
std::string who_in_short(const Turnstile::Position& place);
double seconds_since(const Turnstile::Position& place);
// One sentence for the waiter with |ticket|: the holder of the device and how many requests are ahead.
std::string waiting_sentence(const Turnstile::Queue& queue, TicketNumber ticket);

}  // namespace tenon
