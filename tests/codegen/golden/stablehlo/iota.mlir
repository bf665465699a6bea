// arange(6) * 2
module @tenon {
  func.func public @main() -> (tensor<6xi64>) {
    %0 = stablehlo.iota dim = 0 : tensor<6xi64>
    %1 = stablehlo.constant dense<1> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %3 = stablehlo.multiply %0, %2 : tensor<6xi64>
    %4 = stablehlo.constant dense<0> : tensor<i64>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %6 = stablehlo.add %3, %5 : tensor<6xi64>
    %7 = stablehlo.constant dense<2> : tensor<i64>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i64>) -> tensor<6xi64>
    %9 = stablehlo.multiply %6, %8 : tensor<6xi64>
    "func.return"(%9) : (tensor<6xi64>) -> ()
  }
}
