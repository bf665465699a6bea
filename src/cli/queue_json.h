// A device's queue as JSON.
#pragma once

#include <boost/json.hpp>

#include "lease/turnstile/turnstile.h"

namespace tenon::cli {

boost::json::object to_json(const Turnstile::Queue& queue);

}  // namespace tenon::cli
