#pragma once
// "%s" % value, "{}".format(value) and dates.

#include <ctime>
#include <string>
#include <string_view>

#include "templates/values/value.h"

namespace zoo::templates {

/// `format % value`: %s %r %d %i %u %x %X %o %e %f %g %c %%, with flags, width and precision.
std::string percent_format(Budget& budget, const std::string& format, const Value& value);
/// format.format(…): fields by position and name, their attributes and items, !s and !r, and specifications
/// of texts and numbers.
std::string brace_format(Budget& budget, const std::string& format, const Arguments& arguments);
/// datetime.strftime(format), in the language of the program.
std::string date_text(Budget& budget, const std::string& format, const std::tm& time);

}  // namespace zoo::templates
