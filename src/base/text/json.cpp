// Boost.JSON's implementation, compiled once here; every other file includes <boost/json.hpp> only.
#include <boost/json/src.hpp>
