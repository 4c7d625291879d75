// The one place where Boost.Beast's non-template code is compiled (see CMakeLists.txt).
#include <boost/beast/src.hpp>
