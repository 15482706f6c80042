#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/residues/residues.h"
#include "base/text.h"
#include "data/structures/formats.h"

namespace zoo {
namespace {

/// A word of a CIF file. A quoted one is always a value.
struct CifToken {
  enum class Kind { value, tag, loop, block, end } kind = Kind::end;
  std::string_view text = {};
  bool is_quoted = false;

  /// Unknown, or not applicable.
  bool is_missing() const { return !is_quoted && (text == "?" || text == "."); }
};

class CifLexer {
 public:
  CifLexer(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  std::string place() const { return fmt::format("{}:{}", name_, line_); }

  CifToken next() {
    skip_blanks();
    if (at_ == text_.size()) return {};
    const char first = text_[at_];
    const bool begins_line = at_ == 0 || text_[at_ - 1] == '\n';
    if (first == ';' && begins_line) return text_field();
    if (first == '\'' || first == '"') return quoted(first);
    size_t end = at_;
    while (end < text_.size() && !is_blank(text_[end])) ++end;
    const auto word = text_.substr(at_, end - at_);
    at_ = end;
    if (first == '_') return {.kind = CifToken::Kind::tag, .text = word};
    if (first != 'l' && first != 'L' && first != 'd' && first != 'D')
      return {.kind = CifToken::Kind::value, .text = word};
    const auto lower = ascii_lower(word.substr(0, 5));
    if (lower == "loop_" && word.size() == 5) return {.kind = CifToken::Kind::loop, .text = word};
    if (lower == "data_") return {.kind = CifToken::Kind::block, .text = word.substr(5)};
    return {.kind = CifToken::Kind::value, .text = word};
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  void skip_blanks() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_blank(text_[at_])) {
        line_ += text_[at_++] == '\n';
      } else {
        return;
      }
    }
  }

  CifToken quoted(char mark) {
    for (size_t end = at_ + 1; end < text_.size() && text_[end] != '\n'; ++end) {
      if (text_[end] != mark || (end + 1 < text_.size() && !is_blank(text_[end + 1]))) continue;
      const auto value = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return {.kind = CifToken::Kind::value, .text = value, .is_quoted = true};
    }
    throw DataError(fmt::format("{}: a quoted value has no end", place()));
  }

  CifToken text_field() {
    const auto end = text_.find("\n;", at_);
    if (end == text_.npos) throw DataError(fmt::format("{}: a text between semicolons has no end", place()));
    const auto value = text_.substr(at_ + 1, end - at_ - 1);
    line_ += std::ranges::count(value, '\n') + 1;
    at_ = end + 2;
    return {.kind = CifToken::Kind::value, .text = value, .is_quoted = true};
  }

  std::string_view text_, name_;
  size_t at_ = 0;
  int64_t line_ = 1;
};

/// Rows of a category, whose items have the given names.
class CifRows {
 public:
  CifRows(std::vector<std::string_view> items, const CifLexer& lexer)
      : items_(std::move(items)), lexer_(&lexer) {}

  /// The column of the first of some items that the category has.
  std::optional<size_t> find(std::initializer_list<std::string_view> names) const {
    for (const auto name : names) {
      const auto found = std::ranges::find(items_, name);
      if (found != items_.end()) return static_cast<size_t>(found - items_.begin());
    }
    return std::nullopt;
  }
  size_t at(std::initializer_list<std::string_view> names) const {
    if (const auto found = find(names)) return *found;
    throw DataError(fmt::format("{}: the atoms have no item {}", lexer_->place(), *names.begin()));
  }
  size_t size() const { return items_.size(); }

 private:
  std::vector<std::string_view> items_;
  const CifLexer* lexer_;
};

using CifRow = std::vector<CifToken>;

/// Where the columns of _atom_site are.
struct AtomColumns {
  explicit AtomColumns(const CifRows& rows)
      : name(rows.at({"label_atom_id", "auth_atom_id"})),
        residue(rows.at({"label_comp_id", "auth_comp_id"})),
        chain(rows.at({"auth_asym_id", "label_asym_id"})),
        number(rows.at({"auth_seq_id", "label_seq_id"})),
        position{rows.at({"Cartn_x"}), rows.at({"Cartn_y"}), rows.at({"Cartn_z"})},
        element(rows.find({"type_symbol"})),
        altered(rows.find({"label_alt_id"})),
        insertion(rows.find({"pdbx_PDB_ins_code"})),
        occupancy(rows.find({"occupancy"})),
        b_factor(rows.find({"B_iso_or_equiv"})),
        model(rows.find({"pdbx_PDB_model_num"})),
        entity(rows.find({"label_entity_id"})) {}

  size_t name, residue, chain, number;
  std::array<size_t, 3> position;
  std::optional<size_t> element, altered, insertion, occupancy, b_factor, model, entity;
};

class MmcifReader {
 public:
  MmcifReader(std::string_view text, std::string_view name)
      : lexer_(text, name), builder_(name), name_(name) {}

  Structure read() {
    bool has_block = false;
    for (auto token = lexer_.next(); token.kind != CifToken::Kind::end;) {
      if (token.kind == CifToken::Kind::block) {
        if (has_block) break;  // other blocks are other structures
        has_block = true;
        builder_.structure().name = excerpt(token.text, 40);
        token = lexer_.next();
      } else if (token.kind == CifToken::Kind::loop) {
        token = read_loop();
      } else if (token.kind == CifToken::Kind::tag) {
        token = read_items(token);
      } else {
        throw DataError(
            fmt::format("{}: a value without a name: '{}'", lexer_.place(), excerpt(token.text, 40)));
      }
    }
    auto structure = builder_.finish();
    for (auto& model : structure.models) {
      for (auto& chain : model.chains) {
        const auto entity = entities_.find(chain.name);
        if (entity == entities_.end()) continue;
        const auto letters = sequences_.find(entity->second);
        if (letters != sequences_.end()) chain.sequence = letters->second;
      }
    }
    return structure;
  }

 private:
  static std::string_view category_of(std::string_view tag) { return tag.substr(0, tag.find('.')); }
  static std::string_view item_of(std::string_view tag) {
    const auto dot = tag.find('.');
    return dot == tag.npos ? std::string_view() : tag.substr(dot + 1);
  }

  /// Calls the function that a category has; categories without one are skipped.
  template <class NextRow>
  void read_rows(std::string_view category, const CifRows& rows, NextRow next_row) {
    CifRow row(rows.size());
    if (category == "_atom_site") {
      const AtomColumns columns(rows);
      while (next_row(row)) read_atom(columns, row);
    } else if (category == "_entity_poly_seq") {
      const auto entity = rows.find({"entity_id"}), residue = rows.find({"mon_id"}),
                 place = rows.find({"num"});
      if (!entity || !residue || !place)
        throw DataError(fmt::format("{}: {} has no mon_id", lexer_.place(), category));
      while (next_row(row)) read_residue(row[*entity].text, row[*residue].text, row[*place].text);
    } else {
      while (next_row(row)) {
      }
    }
  }

  /// Returns the token behind the loop.
  CifToken read_loop() {
    std::vector<std::string_view> items;
    auto token = lexer_.next();
    const auto category = category_of(token.text);
    constexpr size_t most_items = 10'000;
    for (; token.kind == CifToken::Kind::tag; token = lexer_.next()) {
      if (category_of(token.text) != category || items.size() == most_items)
        throw DataError(fmt::format("{}: a loop over several categories", lexer_.place()));
      items.push_back(item_of(token.text));
    }
    if (items.empty()) throw DataError(fmt::format("{}: a loop without names", lexer_.place()));
    read_rows(category, CifRows(std::move(items), lexer_), [&](CifRow& row) {
      if (token.kind != CifToken::Kind::value) return false;
      for (auto& value : row) {
        if (token.kind != CifToken::Kind::value)
          throw DataError(
              fmt::format("{}: the last row of {} is not complete", lexer_.place(), excerpt(category, 40)));
        value = token;
        token = lexer_.next();
      }
      return true;
    });
    return token;
  }

  /// A category with one row, which has no loop. Returns the token behind it.
  CifToken read_items(CifToken token) {
    const auto category = category_of(token.text);
    std::vector<std::string_view> items;
    CifRow values;
    while (token.kind == CifToken::Kind::tag && category_of(token.text) == category) {
      items.push_back(item_of(token.text));
      values.push_back(lexer_.next());
      if (values.back().kind != CifToken::Kind::value)
        throw DataError(fmt::format("{}: {} has no value", lexer_.place(), excerpt(token.text, 40)));
      token = lexer_.next();
    }
    bool is_first = true;
    read_rows(category, CifRows(std::move(items), lexer_), [&](CifRow& row) {
      row = values;
      return std::exchange(is_first, false);
    });
    return token;
  }

  void read_atom(const AtomColumns& columns, const CifRow& row) {
    const auto optional = [&](const std::optional<size_t>& column) {
      return column && !row[*column].is_missing() ? row[*column].text : std::string_view();
    };
    for (const auto& value : row) {
      constexpr size_t longest = 32;
      const bool is_plain =
          std::ranges::all_of(value.text, [](unsigned char c) { return c > 0x1F && c < 0x7F; });
      if (value.text.size() > longest || !is_plain)
        throw DataError(
            fmt::format("{}: an atom has the value '{}'", lexer_.place(), excerpt(value.text, 40)));
    }
    const auto number = [&](const std::optional<size_t>& column, double default_value) {
      const auto text = optional(column);
      return text.empty() ? default_value : parse_coordinate(text, lexer_.place());
    };
    if (const auto model = optional(columns.model); model != model_) {
      if (!models_.insert(std::string(model)).second)
        throw DataError(fmt::format("{}: the atoms of model {} are not together", lexer_.place(), model));
      builder_.begin_model();
      model_ = model;
    }
    Atom atom{.name = std::string(row[columns.name].text), .element = std::string(optional(columns.element))};
    for (size_t axis = 0; axis < 3; ++axis)
      atom.position[axis] = parse_coordinate(row[columns.position[axis]].text, lexer_.place());
    atom.occupancy = number(columns.occupancy, 1);
    atom.b_factor = number(columns.b_factor, 0);
    const auto chain = row[columns.chain].text, insertion = optional(columns.insertion);
    const auto& place = row[columns.number];
    const bool is_polymer = !parent_of(row[columns.residue].text).empty();
    if (columns.entity && is_polymer) entities_.emplace(chain, row[*columns.entity].text);
    builder_.add({.chain = chain,
                  .residue = row[columns.residue].text,
                  .number = place.is_missing() ? 0 : parse_residue_number(place.text, lexer_.place()),
                  .insertion = insertion.empty() ? ' ' : insertion.front(),
                  .is_altered = !optional(columns.altered).empty()},
                 std::move(atom));
  }

  /// Of several residues at one place the first counts.
  void read_residue(std::string_view entity, std::string_view residue, std::string_view place) {
    auto& letters = sequences_[std::string(entity)];
    auto& last = last_places_[std::string(entity)];
    if (last == place) return;
    last = place;
    const auto parent = residue_of_name(parent_of(residue));
    letters += residue_letter(parent.value_or(kUnknownResidue));
  }

  CifLexer lexer_;
  StructureBuilder builder_;
  std::string_view name_;
  std::string model_ = "none yet";
  std::set<std::string> models_;
  std::map<std::string, std::string, std::less<>> entities_, sequences_,
      last_places_;  // of chains; of entities
};

/// A value as CIF writes it.
std::string cif_value(std::string_view text) {
  if (text.empty()) return "?";
  const bool is_plain = text.find_first_of(" \t\n'\"#") == text.npos &&
                        std::string_view("_$[];?.").find(text.front()) == std::string_view::npos;
  if (is_plain) return std::string(text);
  return text.find('"') == text.npos ? fmt::format("\"{}\"", text) : fmt::format("'{}'", text);
}

}  // namespace

Structure parse_mmcif(std::string_view text, std::string_view name) { return MmcifReader(text, name).read(); }

std::string to_mmcif(const Structure& structure) {
  std::string block;
  for (const char c : structure.name) block += c > 0x20 && c < 0x7F ? c : '_';
  if (block.empty()) block = "structure";
  auto text = fmt::format("data_{}\n#\n_entry.id {}\n#\n", block, cif_value(block));
  text +=
      "loop_\n_atom_site.group_PDB\n_atom_site.id\n_atom_site.type_symbol\n_atom_site.label_atom_id\n"
      "_atom_site.label_alt_id\n_atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.label_entity_"
      "id\n"
      "_atom_site.label_seq_id\n_atom_site.pdbx_PDB_ins_code\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n"
      "_atom_site.Cartn_z\n_atom_site.occupancy\n_atom_site.B_iso_or_equiv\n_atom_site.auth_seq_id\n"
      "_atom_site.auth_comp_id\n_atom_site.auth_asym_id\n_atom_site.auth_atom_id\n_atom_site.pdbx_PDB_model_"
      "num\n";
  int64_t serial = 1;
  for (size_t m = 0; m < structure.models.size(); ++m) {
    const auto& chains = structure.models[m].chains;
    for (size_t c = 0; c < chains.size(); ++c) {
      const auto chain = cif_value(chains[c].name);
      for (size_t r = 0; r < chains[c].residues.size(); ++r) {
        const auto& residue = chains[c].residues[r];
        const auto name = cif_value(residue.name);
        const bool is_standard = residue.name == residue.parent || residue.name == "UNK";
        const std::string insertion = residue.insertion == ' ' ? "?" : std::string(1, residue.insertion);
        for (const auto& atom : residue.atoms) {
          const auto& [x, y, z] = atom.position;
          text +=
              fmt::format("{} {} {} {} . {} {} {} {} {} {:.3f} {:.3f} {:.3f} {:.2f} {:.2f} {} {} {} {} {}\n",
                          is_standard ? "ATOM" : "HETATM", serial++, cif_value(atom.element),
                          cif_value(atom.name), name, chain, c + 1, r + 1, insertion, x, y, z, atom.occupancy,
                          atom.b_factor, residue.number, name, chain, cif_value(atom.name), m + 1);
        }
      }
    }
  }
  return text + "#\n";
}

}  // namespace zoo
