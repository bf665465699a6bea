// Descriptions of positions in a device's queue.
#pragma once

#include <string>

#include "lease/turnstile/turnstile.h"

namespace tenon {

// "pid 4711 (anna, train.py --epochs 3)"; pids of another namespace are marked.
std::string who(const Turnstile::Position& place);
double seconds_since(const Turnstile::Position& place);
// One sentence for the waiter with |ticket|: the holder of the device and how many requests are ahead.
std::string waiting_sentence(const Turnstile::Queue& queue, TicketNumber ticket);

}  // namespace tenon
