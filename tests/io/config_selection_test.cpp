// Keys that select a type of a registry.

#include <string>
#include <typeinfo>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/config/config_file.h"
#include "io/config/registry.h"
#include "tests/io/sample_config.h"
#include "tests/support/errors.h"

namespace zoo::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct WindowKeys {
  int64_t size = 256;
  std::string edge = "cut";
  std::optional<ScalingConfig> scaling = {};
  bool operator==(const WindowKeys&) const = default;
};
void describe(ConfigVisitor& v, WindowKeys& c) {
  v.field("size", c.size, "Keys on each side.", Limits::at_least(1));
  v.field("edge", c.edge, "What is beyond the ends.");
  v.field("scaling", c.scaling, "Stretching.");
}

struct MixerEntry : TypeInfo {
  int64_t n_sides = 2;
};

const Registry<MixerEntry>& mixers() {
  static const Registry<MixerEntry> types(
      "mixer",
      {{{.name = "full", .doc = "All keys."}},
       {{.name = "window", .doc = "The keys nearby.", .make_options = options_of<WindowKeys>()}, 1}});
  return types;
}

struct BlockConfig {
  Selection mixer = Selection("full");
  std::vector<Selection> layers = {Selection("full")};
};
void describe(ConfigVisitor& v, BlockConfig& c) {
  v.selection("mixer", c.mixer, mixers(), "What mixes.");
  v.selections("layers", c.layers, mixers(), "The same by layer.");
}

struct BlocksConfig {
  std::string name = "run";
  BlockConfig block;
};
void describe(ConfigVisitor& v, BlocksConfig& c) {
  v.field("name", c.name, "Name of the run.");
  v.field("block", c.block, "A part.");
}

BlocksConfig read_blocks(std::string_view yaml, const std::vector<std::string>& overrides = {},
                         BlocksConfig config = {}) {
  ConfigFile::parse(yaml, "a.yaml", overrides).read(config);
  return config;
}
Selection read_mixer(std::string_view yaml, const std::vector<std::string>& overrides = {},
                     const Selection& initial = Selection("full")) {
  return read_blocks(yaml, overrides, {.block = {.mixer = initial}}).block.mixer;
}

TEST(ConfigSelection, IsANameOrAGroupWithAType) {
  EXPECT_EQ(read_mixer("").type, "full");
  for (const char* yaml :
       {"block: {mixer: full}", "block: {mixer: {type: full}}", "block: {mixer: 'full'}"}) {
    const auto mixer = read_mixer(yaml, {}, Selection("window", WindowKeys()));
    EXPECT_TRUE(mixer == "full") << yaml;
    EXPECT_FALSE(mixer.options) << yaml;
  }
  for (const char* yaml : {"block: {mixer: window}", "block:\n  mixer:\n    type: window\n"}) {
    const auto mixer = read_mixer(yaml);
    EXPECT_EQ(mixer.type, "window") << yaml;
    EXPECT_EQ(mixer.as<WindowKeys>(), WindowKeys()) << yaml;
  }
  const auto mixer = read_mixer("block: {mixer: {size: 4, type: window, scaling: {factor: 2}}}");
  EXPECT_EQ(mixer.type, "window");
  EXPECT_EQ(mixer.as<WindowKeys>(), (WindowKeys{4, "cut", ScalingConfig{2, std::nullopt}}));
}

TEST(ConfigSelection, KeysThatTheFileDoesNotSetStayAsTheyAre) {
  const Selection initial("window", WindowKeys{.size = 7, .edge = "wrap", .scaling = {}});
  EXPECT_EQ(read_mixer("", {}, initial).as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
  EXPECT_EQ(read_mixer("block: {mixer: window}", {}, initial).as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
  EXPECT_EQ(read_mixer("block: {mixer: {type: window, size: 9}}", {}, initial).as<WindowKeys>(),
            (WindowKeys{9, "wrap", {}}));
  // A selection shares its keys with its copies, which stay as they are, too.
  EXPECT_EQ(initial.as<WindowKeys>(), (WindowKeys{7, "wrap", {}}));
}

TEST(ConfigSelection, ListsHaveOneOrMore) {
  const auto layers_of = [](std::string_view yaml) {
    std::vector<std::string> texts;
    for (const auto& layer : read_blocks(yaml).block.layers) texts.push_back(to_text(layer));
    return texts;
  };
  const std::string window = "{type: window, size: 256, edge: cut, scaling: null}",
                    narrow = "{type: window, size: 4, edge: cut, scaling: null}";
  EXPECT_THAT(layers_of(""), ElementsAre("full"));
  EXPECT_THAT(layers_of("block: {layers: window}"), ElementsAre(window));
  EXPECT_THAT(layers_of("block: {layers: {type: window, size: 4}}"), ElementsAre(narrow));
  EXPECT_THAT(layers_of("block: {layers: [full]}"), ElementsAre("full"));
  // The same type may come again, with keys of its own.
  EXPECT_THAT(layers_of("block: {layers: [{type: window, size: 4}, full, window, full, {type: window}]}"),
              ElementsAre(narrow, "full", window, "full", window));
}

TEST(ConfigSelection, ProblemsAreSaidInOneLine) {
  const auto said = [](const std::string& block, const std::vector<std::string>& overrides = {}) {
    return message_of<ConfigError>([&] { read_blocks("block: {" + block + "}", overrides); });
  };
  // Unknown types.
  EXPECT_EQ(said("mixer: windw"),
            "a.yaml:1:16: block.mixer must be one of full, window, not 'windw'; did you mean 'window'?");
  EXPECT_EQ(said("mixer: {type: windw}"),
            "a.yaml:1:23: block.mixer.type must be one of full, window, not 'windw'; did you mean 'window'?");
  EXPECT_EQ(said("mixer: convolution"),
            "a.yaml:1:16: block.mixer must be one of full, window, not 'convolution'");
  EXPECT_EQ(said("mixer: [full]"), "a.yaml:1:16: block.mixer must be one of full, window, not a list");
  EXPECT_THAT(said("mixer: null"), EndsWith("block.mixer must be one of full, window, not null"));
  EXPECT_THAT(said("layers: [full, windw]"),
              AllOf(StartsWith("a.yaml:1:24: block.layers[1] must be one of full, window, not 'windw'"),
                    EndsWith("did you mean 'window'?")));
  EXPECT_THAT(said("layers: []"), HasSubstr("block.layers must be one type or a list that is not empty"));
  // No type.
  EXPECT_EQ(said("mixer: {size: 4}"),
            "a.yaml:1:16: block.mixer has no type: add `type:` with one of full, window");
  EXPECT_THAT(said("layers: [{}]"), HasSubstr("block.layers[0] has no type"));
  EXPECT_THAT(said("", {"block.mixer.size=4"}),
              StartsWith("--set block.mixer.size=4: block.mixer has no type"));
  // Keys that the type does not have.
  EXPECT_EQ(said("mixer: {type: window, sise: 4}"),
            "a.yaml:1:31: unknown key 'sise' of the type window; did you mean 'size'?");
  EXPECT_THAT(said("mixer: {type: full, size: 4}"),
              StartsWith("a.yaml:1:29: unknown key 'size' of the type full"));
  EXPECT_THAT(said("layers: [{type: window, size: 4}, {type: full, size: 4}]"),
              StartsWith("a.yaml:1:56: unknown key 'size' of the type full"));
  EXPECT_THAT(said("mixer: {type: window, scaling: {facto: 2}}"), HasSubstr("did you mean 'factor'?"));
  EXPECT_EQ(
      said("mixer: {type: window}", {"block.mixer.sise=4"}),
      "--set block.mixer.sise=4: unknown key 'sise' of the type window; did you mean 'block.mixer.size'?");
  // Values.
  EXPECT_EQ(said("mixer: {type: window, size: x}"),
            "a.yaml:1:37: block.mixer.size must be an integer, not 'x'");
  EXPECT_EQ(said("layers: [full, {type: window, size: 0}]"),
            "a.yaml:1:45: block.layers[1].size must be >= 1, not 0");
  EXPECT_THAT(said("mixer: {type: window, scaling: {factor: 1}}"),
              HasSubstr("block.mixer.scaling.factor must be > 1 and <= 64, not 1"));
  // The keys beside a selection are still checked.
  EXPECT_THAT(said("mixer: {type: window}, mixxer: full"),
              HasSubstr("unknown key 'block.mixxer'; did you mean 'mixer'?"));
}

TEST(ConfigSelection, OverridesReachTheKeysOfTheType) {
  const std::string file = "block: {mixer: {type: window, size: 4}}";
  const auto overridden = [](const std::string& yaml, const std::vector<std::string>& overrides) {
    return to_text(read_mixer(yaml, overrides));
  };
  EXPECT_EQ(overridden(file, {"block.mixer.size=8"}), "{type: window, size: 8, edge: cut, scaling: null}");
  EXPECT_EQ(overridden(file, {"block.mixer.scaling.factor=3", "block.mixer.edge=wrap"}),
            "{type: window, size: 4, edge: wrap, scaling: {factor: 3.0, original: null}}");
  EXPECT_EQ(overridden(file, {"block.mixer=full"}), "full");
  EXPECT_EQ(overridden(file, {"block.mixer=window"}), "{type: window, size: 256, edge: cut, scaling: null}");
  EXPECT_EQ(overridden("", {"block.mixer.type=window", "block.mixer.size=8"}),
            "{type: window, size: 8, edge: cut, scaling: null}");
  EXPECT_EQ(overridden("block: {mixer: full}", {"block.mixer={type: window, size: 8}"}),
            "{type: window, size: 8, edge: cut, scaling: null}");
}

TEST(ConfigSelection, TheDumpReadsBackTheSame) {
  EXPECT_EQ(dump_config(BlocksConfig()), "name: run\nblock:\n  mixer: full\n  layers: full\n");
  BlocksConfig c;
  for (const std::string edge : {"wrap", "a, b}", "x: y # z", "null", "", "\"'\n\\"}) {
    c.block.mixer =
        Selection("window", WindowKeys{.size = 1, .edge = edge, .scaling = ScalingConfig{2.5, 7}});
    c.block.layers = {Selection("window", WindowKeys{.edge = edge}), Selection("full"),
                      Selection("window", WindowKeys{.size = 3, .scaling = ScalingConfig{}})};
    const auto dumped = dump_config(c);
    const auto again = read_blocks(dumped);
    EXPECT_EQ(dump_config(again), dumped);
    EXPECT_EQ(again.block.mixer.as<WindowKeys>(), c.block.mixer.as<WindowKeys>()) << dumped;
    ASSERT_EQ(again.block.layers.size(), 3U) << dumped;
    EXPECT_EQ(again.block.layers[0].as<WindowKeys>(), c.block.layers[0].as<WindowKeys>()) << dumped;
    EXPECT_TRUE(again.block.layers[1] == "full");
    EXPECT_EQ(again.block.layers[2].as<WindowKeys>(), c.block.layers[2].as<WindowKeys>()) << dumped;
  }
}

TEST(ConfigSelection, TheReferenceShowsTypesAndTheirKeys) {
  const auto text = config_reference<BlocksConfig>();
  EXPECT_THAT(text, HasSubstr("  mixer: full "));
  EXPECT_THAT(text, HasSubstr("# What mixes. (one of full, window)\n"));
  EXPECT_THAT(text, HasSubstr("# The same by layer. (one of full, window, or a list of them"));
  for (const char* key : {"mixer", "layers"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("  # {}: {{type: window, …}}", key)));
    EXPECT_THAT(text, ::testing::Not(HasSubstr(fmt::format("# {}: {{type: full", key))));
  }
  EXPECT_THAT(text, HasSubstr("# The keys nearby.\n"));
  // Each key of the type, commented out, with its default, meaning and limits.
  for (const char* line : {"\n    # size: 256 ", "\n    # edge: cut ", "\n    # scaling: null "})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, HasSubstr("# Keys on each side. (integer, >= 1)\n"));
  // The reference is a file with the defaults.
  EXPECT_EQ(dump_config(read_blocks(text)), dump_config(BlocksConfig()));
}

TEST(Registry, FindsSelectsAndAddsTypes) {
  EXPECT_THAT(mixers().names(), ElementsAre("full", "window"));
  EXPECT_EQ(mixers().at("window").n_sides, 1);
  EXPECT_EQ(mixers().at(Selection("full")).n_sides, 2);
  EXPECT_EQ(mixers().find("windw"), nullptr);
  EXPECT_EQ(message_of<ConfigError>([] { mixers().at("windw"); }),
            "there is no mixer 'windw'; there are: full, window");
  EXPECT_EQ(mixers().select("window").as<WindowKeys>(), WindowKeys());
  EXPECT_FALSE(mixers().select("full").options);
  EXPECT_THROW(mixers().select("windw"), ConfigError);

  EXPECT_THROW(Selection("full").as<WindowKeys>(), UsageError);
  EXPECT_THROW(Selection("window", ScalingConfig()).as<WindowKeys>(), std::bad_cast);

  Registry<MixerEntry> own("mixer", {{{.name = "full", .doc = "All keys."}}});
  const auto* const first = own.find("full");
  EXPECT_THAT(message_of<UsageError>([&] { own.add({{.name = "full", .doc = ""}}); }),
              HasSubstr("there is a mixer 'full' already"));
  for (int i = 0; i < 100; ++i) own.add({{.name = fmt::format("mixer-{}", i), .doc = ""}, i});
  EXPECT_EQ(own.find("full"), first) << "types stay where they are";
  EXPECT_EQ(own.at("mixer-99").n_sides, 99);
  EXPECT_EQ(own.infos().size(), 101U);
}

}  // namespace
}  // namespace zoo::testing
