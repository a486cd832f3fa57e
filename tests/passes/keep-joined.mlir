// RUN: sheaf-opt --sheaf-pipeline="entry=main" %s | FileCheck %s
// RUN: sheaf-opt --sheaf-pipeline="entry=main without=keep-joined" %s | FileCheck %s --check-prefix=OFF
// OFF-NOT: sheaf.joined

sheaf.param @w : tensor<80x40xf32> init("glorot", [])
sheaf.param @u : tensor<40x40xf32> init("glorot", [])
sheaf.param @b : tensor<40xf32> init("zeros", [])

// What takes the row of a hoisted product has a form beside it that computes the product, in the
// order of the sum.
// CHECK: sheaf.block @[[JOINED:.*joined]] args(2)
// CHECK-DAG: "window"({{.*}}start = 40
// CHECK-DAG: "window"({{.*}}start = 0
// CHECK: "add"({{.*}}) {} {sheaf.start}
// CHECK: "tanh"
// CHECK-LABEL: func.func @main
// CHECK: sheaf.fold
// CHECK: ^bb0(%[[S:.*]]: tensor<40xf32>, %[[X:.*]]: tensor<40xf32>):
// CHECK: %[[ROW:.*]] = sheaf.record @{{.*}}(%[[X]]) weights {{.*}}sheaf.hoisted
// CHECK: %[[C:.*]] = sheaf.record @{{.*}}%[[ROW]]{{.*}}sheaf.in_joined
// CHECK: %[[N:.*]] = sheaf.joined @[[JOINED]](%[[C]], %[[X]], %[[S]]) weights [@w]
// CHECK: sheaf.yield %[[N]]
func.func @main(%xs: !sheaf.list<tensor<40xf32>>, %h: tensor<40xf32>) -> (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) {
  %w = sheaf.param_ref @w : tensor<80x40xf32>
  %u = sheaf.param_ref @u : tensor<40x40xf32>
  %r = sheaf.fold %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %c = sheaf.apply "concat"(%s, %x) {axis = 0 : i64} : (tensor<40xf32>, tensor<40xf32>) -> tensor<80xf32>
    %p = sheaf.apply "matmul"(%c, %w) {} : (tensor<80xf32>, tensor<80x40xf32>) -> tensor<40xf32>
    %t = sheaf.apply "tanh"(%p) {} : (tensor<40xf32>) -> tensor<40xf32>
    sheaf.yield %t : tensor<40xf32>
  }
  // What is yielded, too, is recorded in any case.
  // CHECK: sheaf.scan
  // CHECK-NOT: sheaf.joined
  // CHECK: return
  %all = sheaf.scan %h, %xs : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> !sheaf.list<tensor<40xf32>> {
  ^bb0(%s: tensor<40xf32>, %x: tensor<40xf32>):
    %p = sheaf.apply "matmul"(%x, %u) {} : (tensor<40xf32>, tensor<40x40xf32>) -> tensor<40xf32>
    %list = sheaf.list(%p) : (tensor<40xf32>) -> !sheaf.list<tensor<40xf32>>
    %q = sheaf.fold %s, %list : (tensor<40xf32>, !sheaf.list<tensor<40xf32>>) -> tensor<40xf32> {
    ^bb0(%i: tensor<40xf32>, %y: tensor<40xf32>):
      %m = sheaf.apply "mul"(%i, %y) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
      sheaf.yield %m : tensor<40xf32>
    }
    %m = sheaf.apply "mul"(%q, %p) {} : (tensor<40xf32>, tensor<40xf32>) -> tensor<40xf32>
    sheaf.yield %m : tensor<40xf32>
  }
  return %r, %all : tensor<40xf32>, !sheaf.list<tensor<40xf32>>
}
