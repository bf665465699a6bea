#include "model/tokenizer/post_processor.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::tokenizer {
namespace {

Template plain() { return {.single = {{.text = 0}}, .pair = {{.text = 0}, {.text = 1, .type = 1}}}; }

std::vector<Template::Part> parts(const Fields& fields, std::string_view name) {
  std::vector<Template::Part> out;
  for (const boost::json::value& each : fields.array(name)) {
    const Fields part(each, fmt::format("{}.{}", fields.where(), name));
    if (part.has("Sequence")) {
      const Fields sequence = part.fields("Sequence");
      const std::string id = sequence.text("id");
      if (id != "A" && id != "B") sequence.refuse(fmt::format("the sequence '{}'", id));
      out.push_back({.text = id == "A" ? 0 : 1, .type = static_cast<std::int32_t>(sequence.integer("type_id", 0))});
      continue;
    }
    const Fields special = part.fields("SpecialToken");
    const Fields token(fields.fields("special_tokens").value(special.text("id")), fields.where() + ".special_tokens");
    Template::Part made{.type = static_cast<std::int32_t>(special.integer("type_id", 0))};
    for (const boost::json::value& id : token.array("ids")) {
      if (!id.is_int64()) token.fail("an id is not an integer");
      made.ids.push_back(static_cast<Id>(id.get_int64()));
    }
    out.push_back(made);
  }
  return out;
}

// ["[SEP]", 102]
Id id_of(const Fields& fields, std::string_view name) {
  const boost::json::array& pair = fields.array(name);
  if (pair.size() != 2 || !pair[1].is_int64()) fields.fail(fmt::format("'{}' is not a token with its id", name));
  return static_cast<Id>(pair[1].get_int64());
}

}  // namespace

Template make_template(const boost::json::value& value, const std::string& where) {
  if (value.is_null()) return plain();
  const Fields fields(value, where);
  const std::string type = fields.text("type");
  if (type == "TemplateProcessing") return {.single = parts(fields, "single"), .pair = parts(fields, "pair")};
  if (type == "BertProcessing") {
    const Id sep = id_of(fields, "sep"), cls = id_of(fields, "cls");
    return {.single = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}},
            .pair = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}, {.text = 1, .type = 1}, {.ids = {sep}, .type = 1}}};
  }
  if (type == "RobertaProcessing") {
    const Id sep = id_of(fields, "sep"), cls = id_of(fields, "cls");
    return {.single = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}},
            .pair = {{.ids = {cls}}, {.text = 0}, {.ids = {sep}}, {.ids = {sep}}, {.text = 1}, {.ids = {sep}}}};
  }
  if (type == "ByteLevel") return plain();  // it changes offsets only
  if (type == "Sequence") {
    Template found = plain();
    std::size_t i = 0;
    bool has_template = false;
    for (const boost::json::value& each : fields.array("processors")) {
      const std::string place = fmt::format("{}.processors[{}]", where, i++);
      const bool adds = Fields(each, place).text("type") != "ByteLevel";
      if (adds && has_template) fields.refuse("a sequence of several templates");
      if (adds) found = make_template(each, place);
      has_template = has_template || adds;
    }
    return found;
  }
  fields.refuse(fmt::format("the post-processor '{}'", type));
}

}  // namespace tenon::tokenizer
