// v ** 3, v ** 0.5, v ** v
module @tenon {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %1 = stablehlo.constant dense<0x40400000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %3 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf64>
    %4 = stablehlo.convert %2 : (tensor<8xf32>) -> tensor<8xf64>
    %5 = stablehlo.power %3, %4 : tensor<8xf64>
    %6 = stablehlo.convert %5 : (tensor<8xf64>) -> tensor<8xf32>
    %7 = stablehlo.constant dense<0x3F000000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %9 = stablehlo.convert %8 : (tensor<8xf32>) -> tensor<8xf64>
    %10 = stablehlo.power %3, %9 : tensor<8xf64>
    %11 = stablehlo.convert %10 : (tensor<8xf64>) -> tensor<8xf32>
    %12 = stablehlo.power %3, %3 : tensor<8xf64>
    %13 = stablehlo.convert %12 : (tensor<8xf64>) -> tensor<8xf32>
    "func.return"(%6, %11, %13) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  }
}
