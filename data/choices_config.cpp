#include "data/choices_config.h"

namespace zoo {

void describe(ConfigVisitor& v, ChoicesConfig& c) {
  v.only_for({"language_modeling"}, [&] {
    v.field("files", c.files,
            "language_modeling: files of questions with choices (docs/data.md) that each evaluation asks, "
            "too; they are looked for as data.train is. Default none.");
  });
  v.field("shots", c.shots,
          "Number of questions with their answers that stand before each question: the first ones of "
          "shots_from.",
          Limits::between(0, 1000));
  v.field("shots_from", c.shots_from,
          "Files of the questions that stand before others; default for the task choices: data.train.");
  v.field("delimiter", c.delimiter, "What stands between a context and a choice.");
  v.field("separator", c.separator, "What stands between questions.");
}

}  // namespace zoo
