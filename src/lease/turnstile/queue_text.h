// Places in a device's queue, in words.
#pragma once

#include <string>

#include "lease/turnstile/turnstile.h"

namespace tenon {

// "pid 4711 (anna, train.py --epochs 3)"; what another pid namespace calls the process is said to be so.
std::string who(const Turnstile::Position& place);
double seconds_since(const Turnstile::Position& place);
// One sentence for somebody who waits with |ticket|: who holds the device and how many are in front.
std::string waiting_sentence(const Turnstile::Queue& queue, TicketNumber ticket);

}  // namespace tenon
