/* Classifies a sentence with a model of trees, such as models/treelstm.sheaf:
 *
 *   sheaf build models/treelstm.sheaf --vocab v.txt --weights w.safetensors -o tree.sheafc
 *   cc classify.c -o classify -lsheaf_runtime
 *   ./classify tree.sheafc the movie is very good
 *
 * The words are leaves, joined from the right: (the (movie (is (very good)))). Prints the scores of
 * the classes.
 */
#include <sheaf/sheaf.h>

#include <stdio.h>
#include <stdlib.h>

static void check(sheaf_status status) {
  if (status == SHEAF_OK)
    return;
  fprintf(stderr, "error: %s\n", sheaf_error_message());
  exit(1);
}

/* A constructor's number, by its name. */
static size_t constructor(sheaf_model *model, sheaf_type type, const char *name) {
  int number = sheaf_type_find_constructor(model, type, name);
  if (number < 0) {
    fprintf(stderr, "error: '%s' has no constructor '%s'\n", sheaf_type_text(model, type), name);
    exit(1);
  }
  return (size_t)number;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s MODEL.sheafc WORD ...\n", argv[0]);
    return 2;
  }
  sheaf_model *model;
  check(sheaf_model_load(argv[1], NULL, &model));

  /* data Tree = Leaf(word: token) | Node(left: Tree, right: Tree) */
  sheaf_type tree = sheaf_model_argument_type(model, 0);
  size_t leaf = constructor(model, tree, "Leaf"), node = constructor(model, tree, "Node");
  sheaf_type token = sheaf_type_field_type(model, tree, leaf, 0);
  const char *vocabulary = sheaf_type_vocabulary(model, token);

  sheaf_batch *batch;
  check(sheaf_batch_create(model, &batch));
  sheaf_value whole = {0};
  for (int i = argc - 1; i >= 2; --i) {
    sheaf_value word, fields[2];
    check(
        sheaf_make_token(batch, token, sheaf_vocabulary_token(model, vocabulary, argv[i]), &word));
    check(sheaf_make_data(batch, tree, leaf, &word, 1, &fields[0]));
    fields[1] = whole;
    if (i == argc - 1)
      whole = fields[0];
    else
      check(sheaf_make_data(batch, tree, node, fields, 2, &whole));
  }
  check(sheaf_batch_add(batch, &whole, 1, 0));

  sheaf_session *session;
  check(sheaf_session_create(NULL, &session));
  sheaf_result *result;
  check(sheaf_session_run(session, batch, &result));
  if (sheaf_result_error(result, 0)) {
    fprintf(stderr, "error: %s\n", sheaf_result_error(result, 0));
    return 1;
  }
  sheaf_view scores;
  DLManagedTensor *tensor;
  check(sheaf_result_value(result, 0, &scores));
  check(sheaf_view_tensor(result, scores, &tensor));
  for (int64_t i = 0; i < tensor->dl_tensor.shape[0]; ++i)
    printf("%s%.9g", i ? " " : "", ((const float *)tensor->dl_tensor.data)[i]);
  printf("\n");

  tensor->deleter(tensor);
  sheaf_result_release(result);
  sheaf_session_release(session);
  sheaf_batch_release(batch);
  sheaf_model_release(model);
  return 0;
}
